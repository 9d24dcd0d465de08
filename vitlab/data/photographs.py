"""Photographs that come with scikit-image, and crops of them: images without a download."""

import math
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import UInt8
from torch import Tensor

from minivit.patches import pair
from minivit.shapes import Size
from vitlab.data.pictures import open_picture, plain


class Photograph(NamedTuple):
    """A photograph's file inside scikit-image, and its terms of use."""

    file: str
    licence: str


PHOTOGRAPHS = {
    "astronaut": Photograph("astronaut.png", "public domain (NASA)"),
    "chelsea": Photograph("chelsea.png", "CC0 (Stefan van der Walt)"),
    "coffee": Photograph("coffee.png", "CC0 (Rachel Michetti)"),
    "rocket": Photograph("rocket.jpg", "public domain (SpaceX)"),
    "hubble_deep_field": Photograph("hubble_deep_field.jpg", "public domain (NASA)"),
    "retina": Photograph("retina.jpg", "CC0 (Mikael Häggström)"),
    "camera": Photograph("camera.png", "CC0 (Lav Varshney)"),
    "brick": Photograph("brick.png", "CC0 (CC0Textures)"),
    "grass": Photograph("grass.png", "CC0 (linolafett)"),
    "gravel": Photograph("gravel.png", "CC0 (CC0Textures)"),
}


def photograph(name: str, size: Size | None = None) -> UInt8[Tensor, "3 height width"]:
    """One of ``PHOTOGRAPHS``, resized and cropped in the middle to ``size``, if any is given.

    The last four are grey, in three equal channels.
    """
    package = find_spec("skimage")
    if name not in PHOTOGRAPHS or not package or not package.origin:
        raise ValueError(f"expected one of {', '.join(PHOTOGRAPHS)}, of scikit-image: got {name!r}")
    # Its own loader would download what it does not find.
    picture = open_picture(Path(package.origin).parent / "data" / PHOTOGRAPHS[name].file)
    return plain(size or (picture.height, picture.width), 3).fit(picture)[0]


def crops(
    n: int,
    size: Size = 32,
    *,
    seed: int = 0,
    names: tuple[str, ...] = ("astronaut", "chelsea", "coffee", "rocket"),
) -> tuple[UInt8[Tensor, "batch 3 height width"], tuple[str, ...]]:
    """Crops random windows of photographs: small images with the statistics of natural ones.

    A window is between one and eight times ``size``, as far as the photograph allows, and resized;
    each photograph is as likely. The first crops are the same whatever ``n`` is. Gives the crops,
    and for each the name of its photograph.
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
        if most < 1:
            raise ValueError(f"{name} has {rows} x {columns} pixels, too few for {size}")
        zoom = most**zoom
        h, w = math.floor(zoom * height), math.floor(zoom * width)
        top = int(down * (rows - h + 1))
        left = int(across * (columns - w + 1))
        pieces.append(resized.fit(whole[name][:, top : top + h, left : left + w]))
        chosen.append(name)
    return torch.cat(pieces), tuple(chosen)
