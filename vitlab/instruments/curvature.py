"""How the loss bends around a model's weights: Hessian eigenvalues, and lines and planes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitlab.instruments.running import Classes, Images, expect
from vitlab.instruments.weights import WeightLoss
from vitlab.krylov.methods import lanczos
from vitlab.krylov.products import or_one, random_like


@dataclass(frozen=True, eq=False)
class Curvature:
    """The outermost eigenvalues of a Hessian; no true one is farther from each than its error."""

    top: Float[Tensor, "k"]  # the largest, descending
    top_errors: Float[Tensor, "k"]
    bottom: Float[Tensor, "k"]  # the smallest, ascending
    bottom_errors: Float[Tensor, "k"]
    directions: Float[Tensor, "k n"]  # unit eigenvectors of the largest


def curvature(
    model: nn.Module,
    images: Images,
    classes: Classes,
    parameters: str | Sequence[str] | None = None,
    *,
    k: int = 5,
    steps: int = 40,
    gauss_newton: bool = False,
    relative: bool = False,
    **how: Any,
) -> Curvature:
    """Extreme eigenvalues of the Hessian of a classifier's loss by its weights, by Lanczos::

        curvature(vit, images, classes).top                          # of all weights
        curvature(vit, images, classes, "blocks.0.*").top            # of the first block's alone

    It gives ``k`` at each end, from so many ``steps`` of Lanczos, about four gradients each; other
    arguments are those of :class:`~vitlab.instruments.weights.WeightLoss`. ``gauss_newton`` takes
    that matrix for the Hessian. ``relative`` takes steps in units of each weight's size, so
    ``diag(|w|) H diag(|w|)``, which ignores rescaled weights: Kwon et al. (2021).
    """
    loss = WeightLoss(model, images, classes, parameters, **how)
    most = min(steps, loss.point.shape[1])
    expect(1 <= k <= most, "k from 1 to the number of steps, or of weights", k)
    product = loss.gauss_newton() if gauss_newton else loss.hessian()
    unit = loss.point.abs() if relative else torch.ones_like(loss.point)
    pairs = lanczos(lambda v: unit * product(unit * v), random_like(loss.point), steps)
    values, errors, vectors = pairs.values[0], pairs.errors[0], pairs.vectors[0]
    top, top_errors, directions = (x.flip(0)[:k] for x in (values, errors, vectors))
    return Curvature(top, top_errors, values[:k], errors[:k], directions)


@dataclass(frozen=True, eq=False)
class Maxima:
    """The eigenvalues of largest size of each mini-batch's Hessian."""

    values: Float[Tensor, "batches k"]  # from the largest absolute value down
    errors: Float[Tensor, "batches k"]

    @property
    def negative(self) -> float:
        """The fraction that is below zero."""
        return (self.values < 0).double().mean().item()

    @property
    def positive(self) -> float:
        """The mean of those above zero; NaN if there are none."""
        return self.values[self.values > 0].double().mean().item()


def batch_maxima(
    model: nn.Module,
    images: Images,
    classes: Classes,
    parameters: str | Sequence[str] | None = None,
    *,
    k: int = 5,
    steps: int = 15,
    batch_size: int = 16,
    **how: Any,
) -> Maxima:
    """The ``k`` Hessian eigenvalues of largest absolute value of each full mini-batch: Park & Kim
    (2022). Few images bend the loss more, in both directions.
    """
    whole = WeightLoss(model, images, classes, parameters, batch_size=batch_size, **how)
    rows = []
    for x, labels in whole.batches:
        if len(x) == batch_size:
            loss = WeightLoss(model, x, labels, parameters, batch_size=batch_size, **how)
            pairs = lanczos(loss.hessian(), random_like(loss.point), max(steps, k))
            order = pairs.values[0].abs().argsort(descending=True)[:k]
            rows.append(torch.stack([pairs.values[0, order], pairs.errors[0, order]]))
    expect(bool(rows), f"{batch_size} images, a mini-batch, or more", whole.count)
    return Maxima(*torch.stack(rows, 1))


@dataclass(frozen=True, eq=False)
class Landscape:
    """The loss on a line or a plane through a model's weights, which are at offset 0."""

    loss: Float[Tensor, "*points"]  # [points], or [points, points]: first direction, second
    offsets: Float[Tensor, "points"]  # how many times a direction is added
    directions: Float[Tensor, "axes n"]


def landscape(
    model: nn.Module,
    images: Images,
    classes: Classes,
    parameters: str | Sequence[str] | None = None,
    *,
    directions: Float[Tensor, "axes n"] | int = 2,
    radius: float = 1.0,
    points: int = 21,
    **how: Any,
) -> Landscape:
    """The loss around a model's weights, after Li et al. (2018)::

        landscape(vit, images, classes).loss                              # two random directions
        top = curvature(vit, images, classes).directions
        landscape(vit, images, classes, directions=top[:1]).loss          # along the sharpest

    ``directions`` are given, or 1 or 2 random ones, made by :func:`filter_normalised`: an offset of
    1 moves filters by their lengths. An odd number of ``points`` from ``-radius`` to ``radius``.
    """
    loss = WeightLoss(model, images, classes, parameters, **how)
    if isinstance(directions, int):
        drawn = [random_like(loss.point, i) for i in range(directions)]
        directions = torch.cat([loss.point[:0], *(filter_normalised(loss, d) for d in drawn)])
    axes, n = len(directions), loss.point.shape[1]
    fits = axes in (1, 2) and directions.shape[1] == n and points % 2
    got = f"{list(directions.shape)} and {points}"
    expect(fits, f"directions [1 or 2, {n}] and an odd number of points", got)
    offsets = torch.linspace(-radius, radius, points, dtype=loss.point.dtype)
    offsets[points // 2] = 0
    places = torch.cartesian_prod(*[offsets] * axes).view(-1, axes)
    losses = [loss(loss.point + place.to(directions) @ directions) for place in places]
    return Landscape(torch.cat(losses).view([points] * axes), offsets, directions)


def filter_normalised(loss: WeightLoss, direction: Float[Tensor, "1 n"]) -> Float[Tensor, "1 n"]:
    """Scales a direction to the lengths of the model's own filters, after Li et al. (2018).

    Filters are rows of weights. For biases, scales and class tokens it is zero, as in their code.
    """
    own, parts = loss.split(loss.point), []
    for name, part in loss.split(direction).items():
        if sum(size > 1 for size in part.shape) < 2:
            parts.append(torch.zeros_like(part).flatten())
            continue
        lengths, drawn = (t.flatten(1).norm(dim=1, keepdim=True) for t in (own[name], part))
        parts.append((part.flatten(1) * (lengths / or_one(drawn))).flatten())
    return torch.cat(parts)[None]
