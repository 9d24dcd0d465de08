"""What the models of every family have in common, and how two of them are compared."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from minivit.networks.checks import check_config
from minivit.networks.patches import grid_of
from minivit.networks.shapes import Grid, Size

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
