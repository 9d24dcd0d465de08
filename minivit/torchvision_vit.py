"""torchvision's vision transformers: their names, and the sizes that their shapes tell."""

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from minivit.model import SOURCES, check_state
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
LAYER = re.compile(r"encoder\.layers\.encoder_layer_\d+")
LEGACY = ("mlp.linear_1.", "mlp.0."), ("mlp.linear_2.", "mlp.3.")  # in torchvision's older files
HEADS = {768: 12, 1024: 16, 1280: 16}  # by dim, in Base, Large and Huge


def converted(given: Mapping[str, Tensor], module: nn.Module | None, heads: int | None) -> ViT:
    """Makes a ViT of the state of a torchvision ``VisionTransformer``, and the module if there."""
    dropout: dict[str, Any] = {}
    if module is not None:
        heads, dropout = _settings(module, heads)
    state = {}
    for key, tensor in given.items():
        for old, new in LEGACY:
            key = key.replace(old, new)
        if key in state:
            raise ValueError(f"{key} is there twice, once under its older name")
        state[key] = tensor
    with torch.device("meta"):  # no memory and no random numbers for what is replaced at once
        model = ViT(ViTConfig(**_sizes(state, heads), **dropout))
    ours = {_torchvision_name(key): key for key in model.state_dict()}
    expected = {name: model.state_dict()[key] for name, key in ours.items()}
    expected[POSITIONS] = expected[POSITIONS][None]  # torchvision's has an axis for the batch
    check_state(state, expected)
    copies = {key: state[name].detach().clone() for name, key in ours.items()}
    copies["positions.table"] = copies["positions.table"][0]
    model.load_state_dict(copies, assign=True)
    return model


def _settings(module: nn.Module, heads: int | None) -> tuple[int, dict[str, Any]]:
    """Reads from torchvision's module what no shape tells: heads, and the fields for dropout."""
    parts = dict(module.named_modules(remove_duplicate=False))
    layers = [name for name in parts if LAYER.fullmatch(name)]
    if not layers or not hasattr(module, "conv_proj"):
        raise ValueError(f"expected {SOURCES}: got {type(module).__name__}")
    counts: list[Any] = [
        getattr(parts.get(f"{name}.self_attention"), "num_heads", None) for name in layers
    ]
    if len(set(counts)) > 1:
        raise ValueError(f"expected equally many heads in all layers: got {counts}")
    if heads not in (None, counts[0]):
        raise ValueError(f"the module has {counts[0]} heads: got heads={heads}")
    for name in layers:
        activation = parts.get(f"{name}.mlp.1")
        if str(activation) != str(nn.GELU()):
            raise ValueError(f"expected {nn.GELU()} in {name}.mlp.1: got {activation}")
    for name, part in parts.items():
        if isinstance(part, nn.LayerNorm) and part.eps != NORM_EPS:
            raise ValueError(f"expected eps={NORM_EPS} in {name}: got {part.eps}")
    fields = "dropout", "attention_dropout"
    return counts[0], {field: getattr(module, field) for field in fields}


def _torchvision_name(key: str) -> str:
    for ours, theirs in NAMES:
        key = key.replace(ours, theirs)
    return key


def _sizes(state: Mapping[str, Any], heads: int | None) -> dict[str, Any]:
    """Reads the fields of a :class:`ViTConfig` from the shapes of torchvision's tensors."""
    hidden_key = "encoder.layers.encoder_layer_0.mlp.0.weight"
    ranks = {"conv_proj.weight": 4, POSITIONS: 3, hidden_key: 2, "heads.head.weight": 2}
    for key, rank in ranks.items():
        if getattr(state.get(key), "ndim", None) != rank:
            shape = getattr(state.get(key), "shape", None)
            raise ValueError(
                f"expected the state of torchvision's VisionTransformer, with {key} of {rank} "
                f"axes: got {'none' if shape is None else list(shape)}"
            )
    dim, channels, *patch_size = state["conv_proj.weight"].shape
    patches = state[POSITIONS].shape[1] - 1  # without the class token
    side = math.isqrt(max(patches, 0))
    if side * side != patches:
        raise ValueError(
            "expected positions for a class token and a square of patches: got "
            f"{list(state[POSITIONS].shape)}"
        )
    if heads is None and dim not in HEADS:
        raise ValueError(
            "a state dict does not tell the number of attention heads, and tokens of width "
            f"{dim} are none of {list(HEADS)}: pass heads="
        )
    return {
        "image_size": (side * patch_size[0], side * patch_size[1]),
        "patch_size": tuple(patch_size),
        "channels": channels,
        "classes": len(state["heads.head.weight"]),
        "dim": dim,
        "depth": len({key.split(".")[2] for key in state if key.startswith("encoder.layers.")}),
        "heads": HEADS[dim] if heads is None else heads,
        "mlp_ratio": len(state[hidden_key]) / dim,
    }
