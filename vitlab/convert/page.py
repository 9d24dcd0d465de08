"""Models for web pages: one file each, which the engine in ``book/_static/live`` runs.

A file is a script in UTF-16, since pages that are opened from a folder can load nothing else. Its
numbers are one string: each character's code has the 16 bits of a number in half precision.
"""

import codecs
import json
import re
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minivit.files import Metadata, atomic_write, to_json
from minivit.mixer import Mixer
from minivit.model import Model
from minivit.preprocessing import Preprocess
from minivit.resnet import ResNet
from minivit.variants import ViTVariant
from minivit.vit import ViT
from vitlab.calls import expect

LARGEST = 2_000_000  # bytes of the file: what a page may ask of a phone
# No string holds these as they are, or no file in UTF-16: halves of surrogates, from -512 to -128.
ESCAPED = re.compile(r'["\\\n\r\ud800-\udfff]')
UNREAD = "num_batches_tracked"  # BatchNorm's count of batches, of no use but in training

# The settings that the engine knows, of those that say more than a size.
KNOWN: dict[type[Model], dict[str, tuple[Any, ...]]] = {
    ViT: {"pool": ("class", "mean")},
    ViTVariant: {"pool": ("class", "mean"), "norm": ("pre",), "window": (None,), "local": (None,)},
    Mixer: {},
    ResNet: {"stem": ("3x3",), "block": ("basic",), "norm": ("batch",)},
}


def export_page(model: Model, path: str | PathLike[str]) -> None:
    """Writes a ViT, a Mixer or a ResNet for web pages, its numbers rounded to half precision.

    A script on the page finds it in ``minivitModels`` under the file's name without ``.js``. The
    model needs ``preprocess`` and ``classes``; the file may have 2 MB.
    """
    path = Path(path)
    expect(path.suffix == ".js", "a path that ends in .js", path)
    content = script(model, path.stem)
    expect(len(content) <= LARGEST, f"a file of at most {LARGEST:,} bytes", f"{len(content):,}")
    with atomic_write(path) as scratch:
        scratch.write_bytes(content)


def script(model: Model, name: str) -> bytes:
    """What the file holds, whatever its size; the model's name is that in ``minivitModels``."""
    preprocess = check(model)
    state = {k: v for k, v in model.state_dict().items() if not k.endswith(UNREAD)}
    about = to_json(Metadata(model.config, preprocess, model.classes, model.licence, model.removed))
    return packed(about, state, name)


def packed(about: dict[str, Any], state: dict[str, Tensor], name: str) -> bytes:
    """What is said of a model, and its numbers, as a script."""
    tensors = [[key, list(tensor.shape)] for key, tensor in state.items()]
    header = json.dumps({**about, "tensors": tensors})
    halves = {key: tensor.detach().cpu().half() for key, tensor in state.items()}
    for key, tensor in halves.items():
        expect(tensor.isfinite().all(), "numbers that half precision has", f"others in {key}")
    codes = torch.cat([tensor.flatten() for tensor in halves.values()]).view(torch.uint16)
    letters = "".join(map(chr, codes.tolist()))
    numbers = ESCAPED.sub(lambda letter: f"\\u{ord(letter[0]):04x}", letters)
    text = f'{header[:-1]}, "numbers": "{numbers}"}}'
    text = f"(globalThis.minivitModels ??= {{}})[{json.dumps(name)}] = {text};\n"
    return codecs.BOM_UTF16_LE + text.encode("utf-16-le")


def check(model: Model) -> Preprocess:
    """Refuses a model that the engine does not run, or that does not know images and classes."""
    if type(model) not in KNOWN:
        raise TypeError(f"a page runs our ViTs, Mixers and ResNets: got {type(model).__name__}")
    for field, values in KNOWN[type(model)].items():
        value = getattr(model.config, field)
        expected = " or ".join(map(repr, values))
        expect(value in values, f"{field}={expected}, which a page runs", f"{field}={value!r}")
    preprocess = getattr(model, "preprocess", None)
    if not isinstance(preprocess, Preprocess) or not model.classes:
        raise ValueError(f"expected preprocess and classes: got {preprocess!r}, {model.classes!r}")
    return preprocess


def rounded(model: Model) -> Model:
    """Rounds a model's numbers as the file has them, in place, for a comparison."""
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(tensor.half())
    return model
