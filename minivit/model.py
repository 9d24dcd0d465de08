"""What the models of every family have in common, and how two of them are compared."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import UnionType
from typing import Any, ClassVar, Literal, Protocol, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from minivit.patches import grid_of, pair
from minivit.shapes import Fraction, Grid, Size


def _count(value: Any) -> bool:
    return type(value) is int and value > 0


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


KINDS: dict[Any, tuple[Callable[[Any], bool], str]] = {
    int: (_count, "must be a positive integer"),
    float: (lambda value: _number(value) and 0 < value < math.inf, "must be positive"),
    Fraction: (lambda value: _number(value) and 0 <= value < 1, "must be at least 0 and below 1"),
    bool: (lambda value: type(value) is bool, "is true or false"),
    tuple[int, ...]: (
        lambda value: type(value) is tuple and value != () and all(map(_count, value)),
        "must be a tuple of positive integers",
    ),
    tuple[str, ...]: (
        lambda value: type(value) is tuple and value != () and all(type(s) is str for s in value),
        "is a tuple of strings",
    ),
}


def check_config(config: Any) -> None:
    """Refuses a configuration in which a field is not of its type or patches do not fit.

    Raises:
        ValueError: Names the field, what was given and what was expected.
    """
    hints = get_type_hints(type(config), include_extras=True)
    for field in fields(config):
        _check_field(field.name, getattr(config, field.name), hints[field.name])
    patch_size = getattr(config, "patch_size", None)
    if patch_size is not None:
        grid_of(config.image_size, patch_size)
    if hasattr(config, "heads") and hasattr(config, "dim") and config.dim % config.heads:
        raise ValueError(f"heads must divide dim: got dim={config.dim}, heads={config.heads}")
    if hasattr(config, "dim") and config.hidden < 1:
        raise ValueError(f"mlp_ratio leaves the MLP no width: got {config.mlp_ratio}")


def _check_field(name: str, value: Any, kind: Any) -> None:
    if get_origin(kind) is UnionType and kind != Size:  # a kind, or none
        if value is None:
            return
        kind = next(k for k in get_args(kind) if k is not type(None))
        kind = Size if kind in get_args(Size) and name.endswith("_size") else kind
    if kind == Size:
        if min(pair(value)) < 1:
            raise ValueError(f"{name} must be positive: got {value!r}")
    elif get_origin(kind) is Literal:
        if value not in (names := get_args(kind)):
            said = f"{', '.join(names[:-1])} or {names[-1]}"
            raise ValueError(f"{name} is {said}: got {value!r}")
    else:
        fits, what = KINDS[kind]
        if not fits(value):
            raise ValueError(f"{name} {what}: got {value!r}")


def check_images(images: Tensor, model: Any) -> None:
    """Refuses images of another rank, channels, size, dtype or device than the model's."""
    config = model.config
    weight = next(model.parameters())
    if images.ndim != 4 or images.shape[1] != config.channels:
        raise ValueError(
            f"expected images [batch, {config.channels}, height, width]: got {list(images.shape)}"
        )
    grid_of((images.shape[2], images.shape[3]), getattr(config, "patch_size", None) or 1)
    # Autocast makes the two alike; integers and float64 it leaves as they are.
    alike = images.dtype == weight.dtype or (
        images.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and torch.is_autocast_enabled(weight.device.type)
    )
    if images.device != weight.device or not alike:
        raise ValueError(
            f"expected images of {weight.dtype} on {weight.device}, as the model's weights: "
            f"got {images.dtype} on {images.device}"
        )


def check_mask(mask: Tensor | None) -> None:
    """Refuses a mask that is not boolean: torch's kernel would add it to the scores."""
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, true where a query may attend: got {mask.dtype}")


SOURCES = "torchvision's VisionTransformer or ResNet, or the state dict of one"


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


# Settings that matter in training alone.
TRAINING = {"training", "dropout", "attention_dropout", "p"}

Removed = tuple[tuple[str, tuple[int, ...] | None], ...]  # parts, and their blocks: none for all


class Config(Protocol):
    """What every family's configuration says. Each is a frozen dataclass, with more fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def image_size(self) -> Size:
        """Height and width in pixels of the images it is made for, or one number for both."""

    @property
    def channels(self) -> int:
        """Channels of an image."""

    @property
    def classes(self) -> int:
        """Number of logits."""


class PatchConfig:
    """What the configurations of a ViT and of a Mixer, both dataclasses, make of their sizes."""

    image_size: Size
    patch_size: Size
    dim: int
    mlp_ratio: float

    def __post_init__(self) -> None:
        check_config(self)

    @property
    def grid(self) -> Grid:
        """Rows and columns of patches."""
        return grid_of(self.image_size, self.patch_size)

    @property
    def hidden(self) -> int:
        """Width of the hidden layer of the MLP on each token."""
        return round(self.dim * self.mlp_ratio)


class Model(nn.Module):
    """A classifier of images: ``[batch, channels, height, width]`` to ``[batch, classes]``.

    ``minivit.load`` sets ``preprocess``, from images to a batch, ``classes``, the names of the
    logits, and ``licence``, the terms of the weights. ``removed`` is what ``minivit.remove`` took.
    """

    config: Config
    head: nn.Module  # the last linear map, [batch, dim] -> [batch, classes]
    preprocess: Callable[[Any], Tensor] = None  # type: ignore[assignment]
    classes: Sequence[str] = None  # type: ignore[assignment]
    licence: str | None = None
    removed: Removed = ()


def structure(model: nn.Module) -> dict[str, Any]:
    """Describes how a model is built, without its parameters.

    Returns:
        By name, the kind of every module in it (``"blocks.0.norm1"``: ``"LayerNorm"``) and its
        settings (``"blocks.0.norm1.eps"``: ``1e-6``), but for those of dropout, which matter in
        training alone.
    """
    found: dict[str, Any] = {}
    for name, module in model.named_modules():
        if name:  # the model's own settings stand in its configuration
            found[name] = type(module).__name__
            for field, value in vars(module).items():
                plain = isinstance(value, bool | int | float | str | tuple)
                if plain and not field.startswith("_") and field not in TRAINING:
                    found[f"{name}.{field}"] = value
    return found


def check_structure(given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuses a :func:`structure` that is not the expected one, naming up to three differences."""
    keys = [key for key in {**expected, **given} if given.get(key) != expected.get(key)]
    if keys:
        said = [f"{k} is {given.get(k)} (expected: {expected.get(k)})" for k in keys[:3]]
        raise ValueError(", ".join(said) + (", ..." if keys[3:] else ""))
