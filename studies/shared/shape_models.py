"""Small models of generated shapes, seconds each: for the class of an image, or of every patch."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import minivit
from minivit.hybrid import to_map, to_tokens
from minivit.model import Model
from studies.shared.training import fit
from vitlab.data.shapes import draw_shapes
from vitlab.instruments.smoothing import between_patches, gaussian_smoothing

SIZE, PATCH, CLASSES = 20, 4, 4  # pixels; of the ten classes the first four
GRID = (SIZE // PATCH, SIZE // PATCH)
WIDTHS = (0.5, 1.5)  # of fixed smoothing, in patches, one for each head
TRAIN, TEST = 2000, 1000
STEPS = {"vit": 200, "resnet": 80}  # a ResNet learns faster, and its steps take longer
SIZES: dict[str, Any] = {"image_size": SIZE, "classes": CLASSES}
VIT: dict[str, Any] = SIZES | {"patch_size": PATCH, "dim": 32, "depth": 4, "heads": 2}
RESNET: dict[str, Any] = SIZES | {"width": 8, "stages": (3, 3, 3)}
HYBRID: dict[str, Any] = SIZES | {
    "stages": ("ccc", "cca", "cca"),
    "widths": (8, 16, 32),
    "heads": (1, 1, 2),
}


@cache
def shapes(part: str) -> tuple[Tensor, Tensor, Tensor]:
    """Images as models read them, labels, and for every patch 0 or one more than its class.

    A patch has the commonest label among its pixels.
    """
    count, seed = {"train": (TRAIN, 1), "test": (TEST, 2), "validation": (TEST, 3)}[part]
    drawn = draw_shapes(count * 10 // CLASSES, SIZE, seed=seed)
    pixels = drawn.masks.long().unfold(1, PATCH, PATCH).unfold(2, PATCH, PATCH)
    patches = pixels.flatten(3).mode(-1).values  # [images, rows, columns]
    few = drawn.labels < CLASSES
    return (drawn.images[few] / 255 - 0.5) / 0.25, drawn.labels[few], patches[few]


class LocalConvolution(nn.Module):
    """In the place of attention: each feature's own 3 x 3 filter between values and output."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.values, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.filters = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.out(to_tokens(self.filters(to_map(self.values(x), GRID[0]))))


class Blur(nn.Module):
    """A fixed 3 x 3 blur of every channel, with weights 1, 2, 1 along each axis."""

    def forward(self, x: Tensor) -> Tensor:
        row = torch.tensor([1.0, 2.0, 1.0]).to(x) / 4
        weight = torch.outer(row, row).expand(x.shape[1], 1, 3, 3)
        return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), weight, groups=x.shape[1])


def new(kind: str) -> Model:
    """An untrained model, from torch's random numbers."""
    if kind == "resnet attention":
        return minivit.create("alternet_32px", **HYBRID)
    name, sizes = ("vit_32px", VIT) if kind.startswith("vit") else ("resnet_32px", RESNET)
    model: Any = minivit.create(name, **sizes)
    if kind == "vit none":
        return minivit.remove(model, "attention")
    if kind == "vit convolution":
        for block in model.blocks:
            block.attention = LocalConvolution(VIT["dim"])
    if kind == "resnet blur":
        for last in (2, 5, 8):
            model.blocks[last] = nn.Sequential(model.blocks[last], Blur())
    return model


def steps_of(kind: str) -> int:
    return STEPS[kind.split()[0]]


def classifier(kind: str, seed: int, times: int = 1) -> Model:
    """A model of the class of images, trained this many times as long as others."""
    torch.manual_seed(seed)
    model = new(kind)
    images, labels, _ = shapes("train")
    with mixed(kind, model, images):
        fit(model, images, labels, steps=times * steps_of(kind), seed=seed)
    return model


def mixed(kind: str, model: Model, images: Tensor) -> AbstractContextManager[None]:
    """What a model trains and runs in: fixed smoothing in the place of attention, or nothing."""
    if kind != "vit gaussian":
        return nullcontext()
    fixed = torch.stack([gaussian_smoothing(GRID, width) for width in WIDTHS])
    return minivit.replace(model, between_patches(model, images[:1], fixed))


class PerPatch(nn.Module):
    """A model's last map or tokens, and a linear head on every patch."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        model.head = nn.Linear(model.head.in_features, CLASSES + 1)

    def forward(self, images: Tensor) -> Tensor:
        """To logits [images, classes, rows, columns]."""
        model: Any = self.model
        whole = hasattr(model, "tokens")
        tokens = model.tokens(images) if whole else to_tokens(model.features(images))
        return to_map(model.head(getattr(model, "norm", nn.Identity())(tokens)), GRID[0])
