"""A model and a recipe to start from, for each source of data."""

from dataclasses import replace
from typing import Any

import torch

from minivit.catalogue import create
from minivit.families import build
from minivit.loading import resized
from minivit.model import Model
from vitlab.data.dataset import Data
from vitlab.training.recipe import Recipe

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
    """Makes an untrained model for the data's image size, channels and classes.

    Args:
        source: Where the data comes from: a name or a folder.
        name: One of :func:`~minivit.catalogue.models`. Default: a small ViT, which for a folder has
            at most 8 x 8 patches.

    Raises:
        ValueError: An unknown model, or one that does not take such images.
    """
    channels, *sides = data.train.images.shape[1:]
    changes: dict[str, Any] = {"image_size": tuple(sides), "channels": channels}
    if name is None and source not in DEFAULTS:
        changes["patch_size"] = tuple(_patch(side) for side in sides)
    name = name or DEFAULTS.get(source, DEFAULTS["FOLDER"])[0]
    return create(name, classes=len(data.classes), **changes)


def _patch(side: int) -> int:
    """The smallest length that divides a side into at most 8."""
    patch = next(n for n in range(-(-side // 8), side + 1) if side % n == 0)
    if side // patch < 4:
        raise ValueError(f"expected sides that 4 to 8 patches divide, such as 64: got {side}")
    return patch


def continued(model: Model, data: Data) -> Model:
    """A trained model to train further, for the images' size and with their classes.

    Positions are resampled to another size, and the head is new unless the classes are the same.

    Raises:
        ValueError: The images have other channels, or the model takes no others sizes of images.
    """
    channels, height, width = data.train.images.shape[1:]
    if channels != model.config.channels:
        raise ValueError(
            f"the trained model reads {model.config.channels} channels: {data.name} has {channels}"
        )
    model = resized(model, (height, width))
    if list(model.classes or ()) == list(data.classes):
        return model
    config: Any = replace(model.config, classes=len(data.classes))  # type: ignore[type-var]
    other = build(config, model.removed)
    new = {key: value for key, value in other.state_dict().items() if key.startswith("head.")}
    other.load_state_dict(model.state_dict() | new)
    return other


def device_of(name: str) -> torch.device:
    """The device with this name, or for ``"auto"`` the fastest there is."""
    there = ["cuda"] * torch.cuda.is_available() + ["mps"] * torch.backends.mps.is_available()
    there.append("cpu")
    if name not in ("auto", *there):
        raise ValueError(f"there is no {name} device here")
    return torch.device(there[0] if name == "auto" else name)


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device has units for bfloat16, which make it faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # For x86 processors alone, and torch has no public name for it.
    return device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
