"""The settings of a training; and for each source of data, a recipe and a model to start from."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from minivit.catalogue import create
from minivit.families import build
from minivit.loading import resized
from minivit.model import Model
from vitlab.boundary import checked
from vitlab.calls import expect
from vitlab.data.dataset import Data
from vitlab.extras import has_bfloat16


@checked
@dataclass(frozen=True)
class Recipe:
    """How a model is trained. :func:`dataclasses.replace` makes one with other settings.

    AdamW (Loshchilov & Hutter 2019), a linear warm-up and then a cosine down to zero, clipped
    gradients. Everything random is a function of ``seed`` and the step.
    """

    epochs: float = 20
    """Passes over the training images."""
    steps: int | None = None
    """Batches, instead of epochs."""
    minutes: float | None = None
    """About how long on this machine, instead of epochs; timed, and fixed before the first step."""
    batch_size: int = 128
    """Images per step, or all of them if there are fewer."""
    learning_rate: float = 1e-3
    """At its peak."""
    warmup: float = 0.1
    """Fraction of the steps over which the learning rate grows from zero."""
    weight_decay: float = 0.05
    """Applied to the weights of linear maps and convolutions alone."""
    clip: float = 1.0
    """Largest norm of the gradient; a longer one is scaled down."""
    average: float = 0.99
    """Decay of the moving average of the weights, 0 for none; at first (1 + step) / (10 + step)."""
    label_smoothing: float = 0.1
    """Fraction of the target spread evenly over the classes (Szegedy et al. 2016)."""
    mixup: float = 0.0
    """Images are mixed in pairs, their weight from Beta(mixup, mixup) (Zhang et al. 2018)."""
    shift: float = 0.0
    """Largest shift of an image, as a fraction of its side; the mirror image enters at the edge."""
    flip: bool = False
    """Whether half of the images are mirrored left to right."""
    operations: int = 0
    """How many of eight operations change each image, after "RandAugment" (Cubuk et al. 2020)."""
    magnitude: float = 0.5
    """How strong these are, from 0 to 1."""
    cutout: float = 0.0
    """Side of a grey square, as a fraction of the image's side (DeVries & Taylor 2017)."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16 takes matrix products in bfloat16; weights, norms and losses stay in float32."""
    seed: int = 0
    """Of the order of the images and of all that happens to them."""

    def __post_init__(self) -> None:
        got = f"{self.steps} steps and {self.minutes} minutes"
        expect(not (self.steps and self.minutes), "steps or minutes", got)


SMALL_COLOUR = Recipe(
    learning_rate=1.5e-3, average=0.998, shift=0.125, flip=True, operations=1, magnitude=0.3
)
SMALL_GREY = Recipe(epochs=30, batch_size=64, learning_rate=3e-3, operations=1, magnitude=0.3)
# Name of the source -> model, recipe; FOLDER for every folder of images.
DEFAULTS: dict[str, tuple[str, Recipe]] = {
    "DIGITS": ("vit_8px", SMALL_GREY),
    "CIFAR10": ("vit_32px", SMALL_COLOUR),
    "SHAPES": ("vit_32px", SMALL_COLOUR),
    "FOLDER": ("vit_32px", replace(SMALL_COLOUR, epochs=40, batch_size=64)),
}


def recipe_for(source: str, device: torch.device, **changes: Any) -> Recipe:
    """The recipe for a source of data, in the precision that is fast on a device, with changes."""
    _, recipe = DEFAULTS.get(source, DEFAULTS["FOLDER"])
    if source != "DIGITS" and has_bfloat16(device):
        recipe = replace(recipe, precision="bfloat16")
    return replace(recipe, **changes)


def model_for(source: str, data: Data, name: str | None = None) -> Model:
    """An untrained model for the data's images and classes: of this name, or a small one."""
    channels, *sides = data.train.images.shape[1:]
    changes: dict[str, Any] = {"image_size": tuple(sides), "channels": channels}
    if name is None and source not in DEFAULTS:
        changes["patch_size"] = tuple(_patch(side) for side in sides)
    name = name or DEFAULTS.get(source, DEFAULTS["FOLDER"])[0]
    return create(name, classes=len(data.classes), **changes)


def _patch(side: int) -> int:
    """The smallest length that divides a side into at most 8."""
    patch = next(n for n in range(-(-side // 8), side + 1) if side % n == 0)
    expect(side // patch >= 4, "sides that 4 to 8 patches divide, such as 64", side)
    return patch


def continued(model: Model, data: Data) -> Model:
    """A trained model to train further, at the images' size; the head is new for other classes."""
    channels, height, width = data.train.images.shape[1:]
    fits = channels == model.config.channels
    expect(fits, f"{model.config.channels} channels", f"{channels} of {data.name}")
    model = resized(model, (height, width))
    if list(model.classes or ()) == list(data.classes):
        return model
    config: Any = replace(model.config, classes=len(data.classes))  # type: ignore[type-var]
    other = build(config, model.removed)
    head = {key: value for key, value in other.state_dict().items() if key.startswith("head.")}
    other.load_state_dict(model.state_dict() | head)
    return other
