"""torchvision's vision transformers as minivit's: the same numbers under our names."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from minivit.encoder import NORM_EPS
from minivit.vit import ViT, ViTConfig

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
LEGACY = ("mlp.linear_1.", "mlp.0."), ("mlp.linear_2.", "mlp.3.")  # in torchvision's older files
SOURCE = "torchvision's VisionTransformer or its state dict"
HEADS = {768: 12, 1024: 16, 1280: 16}  # by dim, in Base, Large and Huge


def from_torchvision(source: nn.Module | Mapping[str, Tensor], heads: int | None = None) -> ViT:
    """Makes minivit's model of a torchvision ``VisionTransformer``: the same function.

    Sizes are read from the shapes. Every key is used once and every shape is checked. The numbers
    are copied: the source stays as it is, and the copy has its dtype and device.

    Args:
        source: The module, or its state dict. From a module come dropout and whether it is
            training, too; from a state dict a model in evaluation mode is made.
        heads: Attention heads, which shapes do not tell. Default: the module's; for a state dict
            12, 16, 16 for tokens 768, 1024, 1280 wide, as in ViT-B, L, H.

    Returns:
        The model, without ``preprocess`` and ``classes``.

    Raises:
        ValueError: Keys missing, surplus or of another shape, numbers that are not finite, a
            module that is no such transformer or has another LayerNorm epsilon, or heads that
            cannot be known.
    """
    dropout: dict[str, Any] = {}
    if isinstance(source, nn.Module):
        heads, dropout = _settings(source, heads)
    elif not isinstance(source, Mapping):
        raise ValueError(f"expected {SOURCE}: got {type(source).__name__}")
    state = {}
    given = source.state_dict() if isinstance(source, nn.Module) else source
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
    return model.train(isinstance(source, nn.Module) and source.training)


def _settings(module: nn.Module, heads: int | None) -> tuple[int, dict[str, Any]]:
    """Reads from torchvision's module what no shape tells: heads, and the fields for dropout."""
    layers: Any = getattr(getattr(module, "encoder", None), "layers", None)
    if not layers or not hasattr(module, "conv_proj"):
        raise ValueError(f"expected {SOURCE}: got {type(module).__name__}")
    if heads not in (None, layers[0].num_heads):
        raise ValueError(f"the module has {layers[0].num_heads} heads: got heads={heads}")
    for name, part in module.named_modules():
        if isinstance(part, nn.LayerNorm) and part.eps != NORM_EPS:
            raise ValueError(f"expected eps={NORM_EPS} in {name}: got {part.eps}")
    fields = "dropout", "attention_dropout"
    return layers[0].num_heads, {field: getattr(module, field) for field in fields}


def check_state(state: Mapping[str, Any], expected: Mapping[str, Tensor]) -> None:
    """Refuses a state dict that is not exactly what is expected.

    Args:
        state: What was given.
        expected: What a fitting model has under each key; only shapes and kinds of numbers count.

    Raises:
        ValueError: Keys missing, surplus, of another shape or kind, or numbers that are not finite:
            one error that counts them all and names the first three of each sort.
    """
    found: dict[str, list[str]] = {
        "missing": [key for key in expected if key not in state],
        "surplus": [key for key in state if key not in expected],
    }
    shapes, kinds, broken = [], [], []
    for key in expected.keys() & state.keys():
        given, wanted = state[key], expected[key]
        if not isinstance(given, Tensor):
            kinds.append(f"{key} (a {type(given).__name__})")
        elif given.shape != wanted.shape:
            shapes.append(f"{key} ({list(given.shape)}, expected {list(wanted.shape)})")
        elif given.is_floating_point() != wanted.is_floating_point():
            kinds.append(f"{key} ({given.dtype})")
        elif not given.is_meta and not given.isfinite().all():
            broken.append(key)
    found |= {"of another shape": shapes, "of another kind": kinds, "with NaN or infinity": broken}
    problems = [
        f"{len(keys)} {sort}: {', '.join(sorted(keys)[:3])}{', ...' if len(keys) > 3 else ''}"
        for sort, keys in found.items()
        if keys
    ]
    if problems:
        raise ValueError(f"these weights do not fit the model: {'; '.join(problems)}")


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
