"""The loss along lines and planes through a model's weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from vitlab.instruments.running import Images
from vitlab.instruments.weights import WeightLoss
from vitlab.krylov import random_like


@dataclass(frozen=True, eq=False)
class Landscape:
    """The loss on a line or a plane through a model's weights, which are at offset 0."""

    loss: Float[Tensor, "*points"]  # [points], or [points, points]: first direction, second
    offsets: Float[Tensor, "points"]  # how many times a direction is added
    directions: Float[Tensor, "axes n"]


def landscape(
    model: nn.Module,
    images: Images,
    classes: Integer[Tensor, "batch"],
    parameters: str | Sequence[str] | None = None,
    *,
    directions: Float[Tensor, "axes n"] | int = 2,
    radius: float = 1.0,
    points: int = 21,
    seed: int = 0,
    **how: Any,
) -> Landscape:
    """The loss around a model's weights, after Li et al. (2018)::

        landscape(vit, images, classes).loss                              # two random directions
        top = curvature(vit, images, classes).directions
        landscape(vit, images, classes, directions=top[:1]).loss          # along the sharpest

    Args:
        images, classes, parameters, how: As for :class:`~vitlab.instruments.weights.WeightLoss`.
        directions: How many random ones, 1 or 2, made by :func:`filter_normalised`; or the
            directions themselves, which are taken as they are.
        radius: The largest offset, in lengths of the directions: 1 of a filter-normalised one moves
            each filter by its own length.
        points: On each axis; odd, so that the weights themselves are among them.
        seed: Of the random directions.

    Raises:
        ValueError: Not one direction or two of as many numbers as there are weights, or an even
            number of points.
        LookupError, TypeError: As for :class:`~vitlab.instruments.weights.WeightLoss`.
    """
    loss = WeightLoss(model, images, classes, parameters, **how)
    if isinstance(directions, int):
        drawn = [random_like(loss.point, seed * 1000 + i) for i in range(directions)]
        directions = torch.cat([loss.point[:0], *(filter_normalised(loss, d) for d in drawn)])
    axes, n = len(directions), loss.point.shape[1]
    if axes not in (1, 2) or directions.shape[1] != n:
        raise ValueError(f"expected directions [1 or 2, {n}]: got {list(directions.shape)}")
    if points < 3 or points % 2 == 0:
        raise ValueError(f"expected an odd number of points, 3 or more: got {points}")
    offsets = torch.linspace(-radius, radius, points, dtype=loss.point.dtype)
    offsets[points // 2] = 0
    places = torch.cartesian_prod(*[offsets] * axes).view(-1, axes)
    losses = [loss(loss.point + place.to(directions) @ directions) for place in places]
    return Landscape(torch.cat(losses).view([points] * axes), offsets, directions)


def filter_normalised(loss: WeightLoss, direction: Float[Tensor, "1 n"]) -> Float[Tensor, "1 n"]:
    """Scales a direction filter by filter to the lengths of the model's own, Li et al. (2018).

    A filter is a row of a weight, ``weight[i]``: what makes one feature or channel. Parameters with
    one axis are no filters: biases, scales and shifts of norms, class tokens, everything with at
    most one axis longer than 1. There the direction is zero, as in the authors' own figures, so
    that they stay as they are.
    """
    parts = []
    for own, part in zip(
        loss.split(loss.point).values(), loss.split(direction).values(), strict=True
    ):
        if sum(size > 1 for size in own.shape) < 2:
            parts.append(torch.zeros_like(part).flatten())
            continue
        lengths, drawn = (t.flatten(1).norm(dim=1, keepdim=True) for t in (own, part))
        scale = lengths / torch.where(drawn > 0, drawn, 1)
        parts.append((part.flatten(1) * scale).flatten())
    return torch.cat(parts)[None]
