"""Validation of the sizes given to ``create`` and of the images given to a model."""

import math
from collections.abc import Callable
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from minivit.networks.patches import grid_of, pair
from minivit.networks.shapes import Fraction, Size


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
