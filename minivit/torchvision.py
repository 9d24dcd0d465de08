"""torchvision's models as minivit's: the same numbers under our names."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from minivit import torchvision_resnet as resnet
from minivit.model import check_state
from minivit.resnet import ResNet
from minivit.vit import NORM_EPS, ViT, ViTConfig

# Parts of a key: ours, torchvision's. In this order, so that no part is mistaken for another.
NAMES = (
    ("patch_embedding.projection.", "conv_proj."),
    ("positions.table", "encoder.pos_embedding"),
    ("blocks.", "encoder.layers.encoder_layer_"),
    ("norm1.", "ln_1."),
    ("attention.qkv.", "self_attention.in_proj_"),
    ("attention.out.", "self_attention.out_proj."),
    ("norm2.", "ln_2."),
    ("mlp.up.", "mlp.0."),
    ("mlp.down.", "mlp.3."),
    ("norm.", "encoder.ln."),
    ("head.", "heads.head."),
)
POSITIONS = "encoder.pos_embedding"
HIDDEN = "encoder.layers.encoder_layer_0.mlp.0.weight"
RANKS = {"conv_proj.weight": 4, POSITIONS: 3, HIDDEN: 2, "heads.head.weight": 2}
LAYER = re.compile(r"encoder\.layers\.encoder_layer_\d+")
LEGACY = ("mlp.linear_1.", "mlp.0."), ("mlp.linear_2.", "mlp.3.")  # in torchvision's older files
HEADS = {768: 12, 1024: 16, 1280: 16}  # by dim, in Base, Large and Huge


def from_torchvision(
    source: nn.Module | Mapping[str, Tensor], heads: int | None = None
) -> ViT | ResNet:
    """Makes minivit's model of torchvision's ``VisionTransformer`` or ``ResNet``, equal to it.

    Sizes are read from the shapes. Every key is used once and every shape is checked. The numbers
    are copied: the source stays as it is, and the copy has its dtype and device.

    Args:
        source: The module, or its state dict. From a module come dropout and whether it is
            training, too; from a state dict a model in evaluation mode is made.
        heads: Attention heads of a ViT, which shapes do not tell. Default: the module's; for a
            state dict 12, 16, 16 for tokens 768, 1024, 1280 wide, as in ViT-B, L, H.

    Raises:
        ValueError: The state is not that of these models, or the module differs in what no shape
            tells (the epsilon of a norm, a stride, an activation).
    """
    module = source if isinstance(source, nn.Module) else None
    state = source if isinstance(source, Mapping) else getattr(source, "state_dict", dict)()
    if resnet.KEY in state:
        return resnet.converted(state, module).train(module is not None and module.training)
    given, state = state, {_renamed(key, LEGACY): tensor for key, tensor in state.items()}
    resnet.check_ranks(state, RANKS, "VisionTransformer")
    if len(state) != len(given):
        raise ValueError("expected each key once: got some under an older name, too")
    dropout: dict[str, Any] = {}
    if module is not None:
        heads, dropout = _settings(module, heads)
    with torch.device("meta"):  # no memory and no random numbers for what is replaced at once
        model = ViT(ViTConfig(**_sizes(state, heads), **dropout))
    ours = {_renamed(key, NAMES): key for key in model.state_dict()}
    expected = {name: model.state_dict()[key] for name, key in ours.items()}
    expected[POSITIONS] = expected[POSITIONS][None]  # torchvision's has an axis for the batch
    check_state(state, expected)
    copies = {key: state[name].detach().clone() for name, key in ours.items()}
    copies["positions.table"] = copies["positions.table"][0]
    model.load_state_dict(copies, assign=True)
    return model.train(module is not None and module.training)


def is_torchvisions(state: Mapping[str, object]) -> bool:
    """Says whether a state dict has torchvision's names, by those that minivit never uses."""
    return resnet.KEY in state or any(key.startswith("encoder.") for key in state)


def _settings(module: nn.Module, heads: int | None) -> tuple[int, dict[str, Any]]:
    """Reads from torchvision's module what no shape tells: heads, and the fields for dropout."""
    parts = dict(module.named_modules(remove_duplicate=False))
    layers = [name for name in parts if LAYER.fullmatch(name)]
    expected = {f"{name}.mlp.1": str(nn.GELU()) for name in layers}
    actual = {name: str(parts.get(name)) for name in expected}
    for name, part in parts.items():
        if isinstance(part, nn.LayerNorm):
            expected[f"{name}.eps"], actual[f"{name}.eps"] = str(NORM_EPS), str(part.eps)
    counts: list[Any] = [
        getattr(parts.get(f"{name}.self_attention"), "num_heads", None) for name in layers
    ]
    expected["heads"], actual["heads"] = str([heads or counts[0]] * len(counts)), str(counts)
    for name, value in expected.items():
        if actual[name] != value:
            got = f"a {type(module).__name__} with {actual[name]}"
            raise ValueError(f"expected a VisionTransformer with {value} as {name}: got {got}")
    return counts[0], {name: getattr(module, name) for name in ("dropout", "attention_dropout")}


def _renamed(key: str, names: Iterable[tuple[str, str]]) -> str:
    for old, new in names:
        key = key.replace(old, new)
    return key


def _sizes(state: Mapping[str, Any], heads: int | None) -> dict[str, Any]:
    """Reads the fields of a :class:`ViTConfig` from the shapes of torchvision's tensors."""
    dim, channels, *patch_size = state["conv_proj.weight"].shape
    patches = state[POSITIONS].shape[1] - 1  # without the class token
    side = math.isqrt(max(patches, 0))
    heads = heads or HEADS.get(dim)
    if side * side != patches or heads is None:
        got = f"positions {list(state[POSITIONS].shape)}, {dim=}, {heads=}"
        expected = f"a class token and a square of patches, and heads= unless dim is in {[*HEADS]}"
        raise ValueError(f"expected {expected}: got {got}")
    return {
        "image_size": (side * patch_size[0], side * patch_size[1]),
        "patch_size": tuple(patch_size),
        "channels": channels,
        "classes": len(state["heads.head.weight"]),
        "dim": dim,
        "depth": len({key.split(".")[2] for key in state if key.startswith("encoder.layers.")}),
        "heads": heads,
        "mlp_ratio": len(state[HIDDEN]) / dim,
    }
