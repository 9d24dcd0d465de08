"""What the models of every family have in common, and the checks of what describes them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from minivit.networks.patches import Size, pair

# Whether it is training, and the rates of MultiHeadAttention, nn.Dropout and StochasticDepth.
TRAINING = {"training", "dropout", "p", "rate"}


class Config(Protocol):
    """What every family's configuration says. Each is a frozen dataclass, with more fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def image_size(self) -> Size:
        """Height and width in pixels of the pictures it is made for, or one number for both."""

    @property
    def channels(self) -> int:
        """Channels of a picture."""

    @property
    def classes(self) -> int:
        """Number of logits."""


class Model(nn.Module):
    """A classifier of pictures: ``[batch, channels, height, width]`` to ``[batch, classes]``."""

    config: Config
    head: nn.Module  # the last linear map, [batch, dim] -> [batch, classes]
    preprocess: Callable[[Any], Tensor]  # set by minivit.load: pictures -> [batch, channels, h, w]
    classes: Sequence[str]  # set by minivit.load: the names of the logits
    licence: str | None  # set by minivit.load: the terms of the weights, or where they are


def check_positive(config: Config, *fields: str) -> None:
    """Refuses fields that are no positive integers."""
    for field in fields:
        value = getattr(config, field)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{field} must be a positive integer: got {value!r}")


def check_counts(config: Config, *fields: str) -> None:
    """Refuses fields that are no tuples of positive integers, with one entry or more."""
    for field in fields:
        value = getattr(config, field)
        whole = isinstance(value, tuple) and value and all(type(n) is int and n > 0 for n in value)
        if not whole:
            raise ValueError(f"{field} must be a tuple of positive integers: got {value!r}")


def check_size(config: Config) -> None:
    """Refuses a size of pictures that is no height and width of a pixel or more."""
    if min(pair(config.image_size)) < 1:
        raise ValueError(f"image_size must be positive: got {config.image_size!r}")


def check_ratios(config: Config, *fields: str) -> None:
    """Refuses fields that are no positive numbers."""
    for field in fields:
        value = getattr(config, field)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise ValueError(f"{field} must be positive: got {value!r}")


def check_shares(config: Config, *fields: str) -> None:
    """Refuses fields that are no shares of what is dropped."""
    for field in fields:
        value = getattr(config, field)
        if not isinstance(value, int | float) or not 0 <= value < 1:
            raise ValueError(f"{field} must be at least 0 and below 1: got {value!r}")


def check_flags(config: Config, *fields: str) -> None:
    """Refuses fields that are neither true nor false."""
    for field in fields:
        value = getattr(config, field)
        if not isinstance(value, bool):
            raise ValueError(f"{field} is true or false: got {value!r}")


def check_branches(residual: bool, stochastic_depth: float) -> None:
    """Refuses stochastic depth without residuals."""
    if stochastic_depth and not residual:
        raise ValueError(
            "stochastic depth leaves a branch out, and without residuals nothing remains: "
            f"got stochastic_depth={stochastic_depth}, residual=False"
        )


def check_choices(config: Config, **choices: Sequence[str]) -> None:
    """Refuses fields that are none of their choices."""
    for field, names in choices.items():
        value = getattr(config, field)
        if value not in names:
            said = f"{', '.join(names[:-1])} or {names[-1]}"
            raise ValueError(f"{field} is {said}: got {value!r}")


def structure(model: nn.Module) -> dict[str, Any]:
    """Says what a model is beside its numbers.

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
    """Refuses a :func:`structure` that is not the expected one, naming up to three differences.

    Raises:
        ValueError: They differ.
    """
    keys = [key for key in {**expected, **given} if given.get(key) != expected.get(key)]
    if keys:
        said = [f"{k} is {given.get(k)} (expected: {expected.get(k)})" for k in keys[:3]]
        raise ValueError(", ".join(said) + (", ..." if keys[3:] else ""))
