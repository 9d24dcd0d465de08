"""Photographs that come with scikit-image, and crops of them: images without a download."""

import math
from importlib.util import find_spec
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from minivit.patches import pair
from minivit.shapes import Size
from vitlab.calls import expect
from vitlab.data.pictures import open_picture, plain

# The terms of use of each; the last four are grey.
PHOTOGRAPHS = {
    "astronaut": "public domain (NASA)",
    "chelsea": "CC0 (Stefan van der Walt)",
    "coffee": "CC0 (Rachel Michetti)",
    "rocket": "public domain (SpaceX)",
    "hubble_deep_field": "public domain (NASA)",
    "retina": "CC0 (Mikael Häggström)",
    "camera": "CC0 (Lav Varshney)",
    "brick": "CC0 (CC0Textures)",
    "grass": "CC0 (linolafett)",
    "gravel": "CC0 (CC0Textures)",
}
SCENES = ("astronaut", "chelsea", "coffee", "rocket")


def photograph(name: str, size: Size | None = None) -> UInt8[Tensor, "3 height width"]:
    """One of ``PHOTOGRAPHS``, resized and cropped in the middle to ``size``, if any is given."""
    package = find_spec("skimage")
    if name not in PHOTOGRAPHS or not package or not package.origin:
        raise ValueError(f"expected one of {', '.join(PHOTOGRAPHS)}, of scikit-image: got {name!r}")
    # Its own loader would download what it does not find.
    (file,) = (Path(package.origin).parent / "data").glob(f"{name}.*")
    picture = open_picture(file)
    return plain(size or (picture.height, picture.width), 3).fit(picture)[0]


def crops(
    n: int, size: Size = 32, *, seed: int = 0, names: tuple[str, ...] = SCENES
) -> tuple[UInt8[Tensor, "batch 3 height width"], tuple[str, ...]]:
    """Crops random windows of photographs: small images with the statistics of natural ones.

    A window is between one and eight times ``size``, as far as the photograph allows, and resized.
    The first are the same whatever ``n`` is. Gives crops, and the name of the photograph of each.
    """
    whole = {name: photograph(name) for name in names}
    height, width = pair(size)
    resized = plain(size, 3)
    generator = torch.Generator().manual_seed(seed)
    pieces, chosen = [], []
    for _ in range(n):
        which, zoom, down, across = torch.rand(4, generator=generator).tolist()
        name = names[int(which * len(names))]
        rows, columns = whole[name].shape[1:]
        most = min(8.0, rows / height, columns / width)
        expect(most >= 1, f"{size} pixels or more in {name}", f"{rows} x {columns}")
        zoom = most**zoom
        h, w = math.floor(zoom * height), math.floor(zoom * width)
        top = int(down * (rows - h + 1))
        left = int(across * (columns - w + 1))
        pieces.append(resized.fit(whole[name][:, top : top + h, left : left + w]))
        chosen.append(name)
    return torch.cat(pieces), tuple(chosen)
