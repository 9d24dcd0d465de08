"""What happens to a batch of pictures before a model is trained on it.

Pictures are floats from 0 to 1, ``[batch, channels, height, width]``. Every number is drawn on the
CPU from a generator, so a batch depends on its seed alone, and what is done is done to the whole
batch at once. With strength zero, every function returns its pictures bit for bit.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from minivit.training.recipe import Recipe

# The operations of RandAugment that are smooth, and how far each goes at magnitude 1.
GEOMETRY = {"rotation": math.radians(30), "shear x": 0.3, "shear y": 0.3, "zoom": 0.3}
COLOUR = {"brightness": 0.8, "contrast": 0.8, "saturation": 0.8, "sharpness": 0.8}
GREY = (0.299, 0.587, 0.114)  # of red, green and blue: ITU-R BT.601


def augment(images: Tensor, recipe: Recipe, generator: Generator) -> Tensor:
    """Shifts, mirrors, distorts, recolours and covers pictures as a recipe says.

    Args:
        images: Floats from 0 to 1, ``[batch, channels, height, width]``.
        recipe: Its ``shift``, ``flip``, ``operations``, ``magnitude`` and ``cutout`` count.
        generator: On the CPU.

    Returns:
        Floats from 0 to 1 of the same shape.
    """
    images = shift_and_flip(images, recipe.shift, recipe.flip, generator)
    images = distort(images, recipe.operations, recipe.magnitude, generator)
    return cutout(images, recipe.cutout, generator)


def shift_and_flip(images: Tensor, share: float, flip: bool, generator: Generator) -> Tensor:
    """Shifts each picture by whole pixels, its mirror image coming in, and mirrors half of them.

    Args:
        images: ``[batch, channels, height, width]``.
        share: The largest shift, as a share of height and of width.
        flip: Whether to mirror, left to right.
        generator: On the CPU.
    """
    batch, _, height, width = images.shape
    places = []  # for each axis, from where each pixel comes: [batch, height], [batch, width]
    for length in (height, width):
        far = int(share * length)
        start = torch.randint(-far, far + 1, (batch, 1), generator=generator)
        place = (start + torch.arange(length)).abs()  # mirrored at 0 ...
        places.append(length - 1 - (length - 1 - place).abs())  # ... and at the other edge
    mirrored = torch.rand(batch, 1, generator=generator) < 0.5
    if flip:
        places[1] = torch.where(mirrored, width - 1 - places[1], places[1])
    elif not share:
        return images
    rows, columns = (place.to(images.device) for place in places)
    picture = torch.arange(batch, device=images.device)[:, None, None]
    moved = images.movedim(1, -1)[picture, rows[:, :, None], columns[:, None, :]]
    return moved.movedim(-1, 1).contiguous()


def distort(images: Tensor, operations: int, magnitude: float, generator: Generator) -> Tensor:
    """Lets some of eight operations befall each picture, a different choice for each.

    After Cubuk et al. (2020), "RandAugment", which has fourteen. Each goes as far as ``magnitude``
    says, in one direction or the other. The geometric ones become one map, so that a picture is
    resampled once.

    Args:
        images: Floats from 0 to 1, ``[batch, channels, height, width]``.
        operations: How many, from 0 to 8.
        magnitude: From 0 to 1.
        generator: On the CPU.
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
    images: Tensor, turn: Tensor, shear_x: Tensor, shear_y: Tensor, zoom: Tensor
) -> Tensor:
    """Rotates, shears and zooms each picture about its middle, in one bilinear resampling.

    Args:
        images: ``[batch, channels, height, width]``.
        turn: Radians, ``[batch]``.
        shear_x: Pixels to the side for each pixel down, ``[batch]``.
        shear_y: Pixels down for each pixel to the side, ``[batch]``.
        zoom: Logarithm of the factor, ``[batch]``.
    """
    aspect = images.shape[3] / images.shape[2]  # both axes run from -1 to 1
    cos, sin = turn.cos() / zoom.exp(), turn.sin() / zoom.exp()
    # Where an output pixel comes from: the rotation times the shears.
    x = torch.stack([cos - sin * shear_y, (cos * shear_x - sin) / aspect, 0 * turn], 1)
    y = torch.stack([(sin + cos * shear_y) * aspect, sin * shear_x + cos, 0 * turn], 1)
    grid = F.affine_grid(torch.stack([x, y], 1), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False).clamp(0, 1)


def recolour(
    images: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor, sharpness: Tensor
) -> Tensor:
    """Moves each picture away from black, from flat grey, from its grey version, from a blur.

    With strength -1 it arrives there, with 0 nothing happens, with 1 it goes as far beyond.

    Args:
        images: Floats from 0 to 1, ``[batch, channels, height, width]``.
        brightness, contrast, saturation, sharpness: Strengths, ``[batch]``.
    """
    channels = images.shape[1]
    shares = GREY if channels == 3 else (1 / channels,) * channels
    weights = torch.tensor(shares).to(images).view(1, -1, 1, 1)
    kernel = torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]]).to(images) / 13
    kernel = kernel.expand(channels, 1, 3, 3)

    def grey(x: Tensor) -> Tensor:
        return (x * weights).sum(1, keepdim=True)

    def blurred(x: Tensor) -> Tensor:
        return F.conv2d(F.pad(x, (1, 1, 1, 1), "replicate"), kernel, groups=channels)

    for strength, target in (
        (brightness, torch.zeros_like),
        (contrast, lambda x: grey(x).mean((2, 3), keepdim=True)),
        (saturation, grey),
        (sharpness, blurred),
    ):
        away = images - target(images)
        images = (images + strength.view(-1, 1, 1, 1) * away).clamp(0, 1)
    return images


def cutout(images: Tensor, share: float, generator: Generator) -> Tensor:
    """Covers a square of each picture, about a point anywhere in it, with mid-grey.

    Args:
        images: ``[batch, channels, height, width]``.
        share: Side of the square, as a share of height and of width; at the edge less is seen.
        generator: On the CPU.
    """
    middle = torch.rand(2, len(images), 1, generator=generator)
    if not share:
        return images
    near = [
        (((torch.arange(length) + 0.5) / length - centre).abs() < share / 2).to(images.device)
        for length, centre in zip(images.shape[2:], middle, strict=True)
    ]  # [batch, height], [batch, width]
    covered = near[0][:, None, :, None] & near[1][:, None, None, :]
    return images.masked_fill(covered, 0.5)


def mixup(
    images: Tensor, targets: Tensor, alpha: float, draws: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Mixes each picture and its target with another's: Zhang et al. (2018).

    Args:
        images: ``[batch, channels, height, width]``.
        targets: Probabilities, ``[batch, classes]``.
        alpha: The share of the first comes from Beta(alpha, alpha), one for the batch; 0 mixes
            nothing.
        draws: Where the share and the pairs come from.
    """
    if not alpha:
        return images, targets
    share = float(draws.beta(alpha, alpha))
    other = torch.from_numpy(draws.permutation(len(images))).to(images.device)
    return images.lerp(images[other], 1 - share), targets.lerp(targets[other], 1 - share)
