"""Augmentation of a batch of images, as floats from 0 to 1; a batch depends on its seed alone."""

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from vitlab.training.recipe import Recipe

Images = Float[Tensor, "batch channels height width"]
Targets = Float[Tensor, "batch classes"]  # probabilities
Strength = Float[Tensor, " batch"]

# The operations of RandAugment that are smooth, and how far each goes at magnitude 1.
GEOMETRY = {"rotation": math.radians(30), "shear x": 0.3, "shear y": 0.3, "zoom": 0.3}
COLOUR = {"brightness": 0.8, "contrast": 0.8, "saturation": 0.8, "sharpness": 0.8}
GREY = (0.299, 0.587, 0.114)  # of red, green and blue: ITU-R BT.601


def augment(images: Images, recipe: Recipe, generator: Generator) -> Images:
    """Applies the ``shift``, ``flip``, ``operations`` and ``cutout`` of a recipe."""
    images = shift_and_flip(images, recipe.shift, recipe.flip, generator)
    images = distort(images, recipe.operations, recipe.magnitude, generator)
    return cutout(images, recipe.cutout, generator)


def shift_and_flip(images: Images, fraction: float, flip: bool, generator: Generator) -> Images:
    """Shifts images, mirrored at the edge, by at most ``fraction`` of a side; mirrors half."""
    batch, _, height, width = images.shape
    sources = []  # where each pixel comes from: [batch, height], [batch, width]
    for length in (height, width):
        far = int(fraction * length)
        start = torch.randint(-far, far + 1, (batch, 1), generator=generator)
        source = (start + torch.arange(length)).abs()  # mirrored at 0 ...
        sources.append(length - 1 - (length - 1 - source).abs())  # ... and at the other edge
    mirrored = torch.rand(batch, 1, generator=generator) < 0.5
    if flip:
        sources[1] = torch.where(mirrored, width - 1 - sources[1], sources[1])
    elif not fraction:
        return images
    rows, columns = (source.to(images.device) for source in sources)
    picture = torch.arange(batch, device=images.device)[:, None, None]
    moved = images.movedim(1, -1)[picture, rows[:, :, None], columns[:, None, :]]
    return moved.movedim(-1, 1).contiguous()


def distort(images: Images, operations: int, magnitude: float, generator: Generator) -> Images:
    """Applies some of eight operations, chosen at random for each image, in a random direction.

    After Cubuk et al. (2020), "RandAugment". The geometric ones are one resampling.
    """
    names = GEOMETRY | COLOUR
    order = torch.rand(len(images), len(names), generator=generator).argsort(1)
    sign = torch.randint(0, 2, order.shape, generator=generator) * 2 - 1
    if not operations or not magnitude:
        return images
    strength = (order < operations) * sign * magnitude * torch.tensor(list(names.values()))
    strength = strength.to(images)  # [batch, 8]; 0 where the operation was not chosen
    geometry, colour = strength.split([len(GEOMETRY), len(COLOUR)], 1)
    moved = geometry.any(1).view(-1, 1, 1, 1)
    images = torch.where(moved, transform(images, *geometry.unbind(1)), images)
    return recolour(images, *colour.unbind(1))


def transform(
    images: Images, turn: Strength, shear_x: Strength, shear_y: Strength, zoom: Strength
) -> Images:
    """Rotates, shears and zooms each image about its middle, in one bilinear resampling.

    In radians, in pixels to the side for each pixel down, the other way round, and as a logarithm.
    """
    aspect = images.shape[3] / images.shape[2]  # both axes run from -1 to 1
    cos = turn.cos() / zoom.exp()
    sin = turn.sin() / zoom.exp()
    # Where an output pixel comes from: the rotation times the shears.
    x = torch.stack([cos - sin * shear_y, (cos * shear_x - sin) / aspect, 0 * turn], 1)
    y = torch.stack([(sin + cos * shear_y) * aspect, sin * shear_x + cos, 0 * turn], 1)
    grid = F.affine_grid(torch.stack([x, y], 1), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False).clamp(0, 1)


def recolour(images: Images, *strengths: Strength) -> Images:
    """Moves each image away from black, from flat grey, from its grey version, from a blur.

    Brightness, contrast, saturation, sharpness: -1 arrives there, 1 goes as far beyond.
    """
    channels = images.shape[1]
    luma = GREY if channels == 3 else (1 / channels,) * channels
    weights = torch.tensor(luma).to(images).view(1, -1, 1, 1)
    kernel = torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]]).to(images) / 13
    kernel = kernel.expand(channels, 1, 3, 3)

    def grey(x: Tensor) -> Tensor:
        return (x * weights).sum(1, keepdim=True)

    def blurred(x: Tensor) -> Tensor:
        return F.conv2d(F.pad(x, (1, 1, 1, 1), "replicate"), kernel, groups=channels)

    def flat(x: Tensor) -> Tensor:
        return grey(x).mean((2, 3), keepdim=True)

    targets: list[Callable[[Tensor], Tensor]] = [torch.zeros_like, flat, grey, blurred]
    for strength, target in zip(strengths, targets, strict=True):
        away = images - target(images)
        images = (images + strength.view(-1, 1, 1, 1) * away).clamp(0, 1)
    return images


def cutout(images: Images, fraction: float, generator: Generator) -> Images:
    """Covers ``fraction`` of each image's height and width, about a random point, with mid-grey."""
    middle = torch.rand(2, len(images), 1, generator=generator)
    if not fraction:
        return images
    near = [
        (((torch.arange(length) + 0.5) / length - centre).abs() < fraction / 2).to(images.device)
        for length, centre in zip(images.shape[2:], middle, strict=True)
    ]  # [batch, height], [batch, width]
    covered = near[0][:, None, :, None] & near[1][:, None, None, :]
    return images.masked_fill(covered, 0.5)


def mixup(
    images: Images, targets: Targets, alpha: float, draws: np.random.Generator
) -> tuple[Images, Targets]:
    """Mixes each image and its target with another's, all by one weight (Zhang et al. 2018)."""
    if not alpha:
        return images, targets
    weight = float(draws.beta(alpha, alpha))
    other = torch.from_numpy(draws.permutation(len(images))).to(images.device)
    return images.lerp(images[other], 1 - weight), targets.lerp(targets[other], 1 - weight)
