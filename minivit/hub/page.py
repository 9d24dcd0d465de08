"""Models for web pages: one file each, which the engine in ``book/_static/live`` runs.

The file is a script, since pages that are opened from a folder can load nothing else. It hands over
one text in base64: the length of a header, a header in JSON, and the numbers in half precision.
"""

import base64
import json
import struct
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minivit.hub.files import replacing
from minivit.hub.header import About, said
from minivit.hub.preprocessing import Preprocess
from minivit.networks.mixer import Mixer
from minivit.networks.model import Model
from minivit.networks.resnet import ResNet
from minivit.networks.variants import ViTVariant
from minivit.networks.vit import ViT

LARGEST = 2 * 2**20  # bytes, without base64: what a page may ask of a phone
UNREAD = "num_batches_tracked"  # BatchNorm's count of batches, of no use but in training

# The settings that the engine knows, of those that say more than a size.
KNOWN: dict[type[Model], dict[str, tuple[Any, ...]]] = {
    ViT: {"pool": ("class", "mean")},
    ViTVariant: {
        "pool": ("class", "mean"),
        "norm": ("pre",),
        "window": (None,),
        "local": (None,),
    },
    Mixer: {},
    ResNet: {"stem": ("3x3",), "block": ("basic",), "norm": ("batch",)},
}


def export_page(model: Model, path: str | PathLike[str]) -> None:
    """Writes a model for web pages, its numbers rounded to half precision.

    A script on the page finds it in ``minivitModels`` under the file's name without ``.js``.

    Args:
        model: A ViT, a Mixer or a ResNet, with ``preprocess`` and ``classes``.
        path: The file, which ends in ``.js``.

    Raises:
        TypeError: The model is of another family.
        ValueError: It has a part that the engine does not know, no preprocessing or names, a number
            beyond half precision's, or more than 2 MiB of them; or the path ends otherwise.
        OSError: The file cannot be written.
    """
    path = Path(path)
    if path.suffix != ".js":
        raise ValueError(f"expected a path that ends in .js: got {path}")
    text = base64.b64encode(packed(model)).decode()
    with replacing(path) as scratch:
        scratch.write_text(
            f"(globalThis.minivitModels ??= {{}})[{json.dumps(path.stem)}] = `{text}`;\n"
        )


def packed(model: Model) -> bytes:
    """The model in bytes: the header's length, the header, the numbers, all little-endian."""
    preprocess = check(model)
    state = {k: v for k, v in model.state_dict().items() if not k.endswith(UNREAD)}
    about = said(About(model.config, preprocess, model.classes, model.licence, model.removed))
    tensors = [[name, list(tensor.shape)] for name, tensor in state.items()]
    header = json.dumps({**about, "tensors": tensors}, ensure_ascii=False).encode()
    numbers = b"".join(half(name, tensor) for name, tensor in state.items())
    content = struct.pack("<I", len(header)) + header + numbers
    if len(content) > LARGEST:
        raise ValueError(
            f"expected a model of at most {LARGEST:,} bytes in half precision, for a page: "
            f"got {len(content):,}"
        )
    return content


def half(name: str, tensor: Tensor) -> bytes:
    """A tensor's numbers in half precision, little-endian."""
    rounded = tensor.detach().cpu().half()
    if not rounded.isfinite().all():
        raise ValueError(f"expected numbers that half precision has: got others in {name}")
    return rounded.contiguous().numpy().astype("<f2").tobytes()


def check(model: Model) -> Preprocess:
    """Refuses a model that the engine does not run, or that cannot name what it sees.

    Returns:
        How it wants its images prepared.
    """
    if type(model) not in KNOWN:
        raise TypeError(
            "a page runs ViTs, Mixers and ResNets (minivit.ViT, minivit.ViTVariant, minivit.Mixer, "
            f"minivit.ResNet): got {type(model).__name__}"
        )
    for field, values in KNOWN[type(model)].items():
        value = getattr(model.config, field)
        if value not in values:
            expected = " or ".join(map(repr, values))
            raise ValueError(f"a page runs models with {field}={expected}: got {field}={value!r}")
    preprocess = getattr(model, "preprocess", None)
    if not isinstance(preprocess, Preprocess) or not model.classes:
        raise ValueError(
            "a page needs to know how images are prepared and what classes are called: expected "
            f"model.preprocess and model.classes, got {preprocess!r} and {model.classes!r}"
        )
    return preprocess


def rounded(model: Model) -> Model:
    """Rounds a model's numbers as the file has them, in place, for a comparison."""
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(tensor.half())
    return model
