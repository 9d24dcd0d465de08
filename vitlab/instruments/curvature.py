"""How sharply the loss bends at a model's weights: the outermost eigenvalues of its Hessian."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from vitlab.instruments.running import Images
from vitlab.instruments.weights import WeightLoss
from vitlab.krylov import lanczos, random_like


@dataclass(frozen=True, eq=False)
class Curvature:
    """The outermost eigenvalues of a Hessian, and how far off each is at most.

    A true eigenvalue lies no farther from each value than its error. Which one is not certain: of
    several that are nearly equal some may be missed.
    """

    top: Float[Tensor, "k"]  # the largest, descending
    top_errors: Float[Tensor, "k"]
    bottom: Float[Tensor, "k"]  # the smallest, ascending
    bottom_errors: Float[Tensor, "k"]
    directions: Float[Tensor, "k n"]  # unit eigenvectors of the largest
    downward: Float[Tensor, "k n"]  # and of the smallest
    loss: float
    slope: float  # length of the gradient


def curvature(
    model: nn.Module,
    images: Images,
    classes: Integer[Tensor, "batch"],
    parameters: str | Sequence[str] | None = None,
    *,
    k: int = 5,
    steps: int = 40,
    gauss_newton: bool = False,
    relative: bool = False,
    seed: int = 0,
    **how: Any,
) -> Curvature:
    """Extreme eigenvalues of the Hessian of a classifier's loss by its weights, by Lanczos::

        curvature(vit, images, classes).top                          # of all weights
        curvature(vit, images, classes, "blocks.0.*").top            # of the first block's alone
        curvature(vit, images, classes, gauss_newton=True).top
        curvature(vit, images, classes, relative=True).top           # of steps as large as weights

    Each step costs one exact product with the Hessian, about four times a gradient.

    Args:
        images, classes, parameters, how: As for :class:`~vitlab.instruments.weights.WeightLoss`:
            ``weight_decay``, ``label_smoothing``, ``batch_statistics``, ``batch_size``.
        k: Eigenvalues at each end.
        steps: Of Lanczos. Those of an end whose errors are too large need more.
        gauss_newton: Of the generalised Gauss-Newton matrix in place of the Hessian.
        relative: With each weight's step in units of its own size, so of ``diag(|w|) H diag(|w|)``,
            which stays as it is when weights are rescaled and the function is not: adaptive
            sharpness, Kwon et al. (2021). Directions are in these units too.
        seed: Of the random start.

    Raises:
        ValueError: ``k`` is not between 1 and the steps, or derivatives are not finite.
        LookupError, TypeError: As for :class:`~vitlab.instruments.weights.WeightLoss`.
    """
    loss = WeightLoss(model, images, classes, parameters, **how)
    if not 1 <= k <= min(steps, loss.point.shape[1]):
        raise ValueError(f"expected k from 1 to the number of steps, or of weights: got {k}")
    bent = loss.gauss_newton() if gauss_newton else loss.hessian()
    unit = loss.point.abs() if relative else torch.ones_like(loss.point)
    found = lanczos(lambda v: unit * bent(unit * v), random_like(loss.point, seed), steps)
    values, errors, vectors = found.values[0], found.errors[0], found.vectors[0]
    return Curvature(
        values.flip(0)[:k],
        errors.flip(0)[:k],
        values[:k],
        errors[:k],
        vectors.flip(0)[:k],
        vectors[:k].clone(),
        loss.value,
        loss.gradient().norm().item(),
    )


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
    classes: Integer[Tensor, "batch"],
    parameters: str | Sequence[str] | None = None,
    *,
    k: int = 5,
    steps: int = 15,
    batch_size: int = 16,
    seed: int = 0,
    **how: Any,
) -> Maxima:
    """Hessian eigenvalues mini-batch by mini-batch, as Park & Kim (2022) plot them.

    Of each mini-batch they take the five eigenvalues of largest absolute value. These are other
    numbers than the eigenvalues of the loss on all images: few images bend the loss more, in both
    directions. A last batch with fewer images is left out.

    Args:
        images, classes, parameters, how: As for :func:`curvature`.
        k: Eigenvalues of each mini-batch.
        steps: Of Lanczos, for each mini-batch.

    Raises:
        ValueError: There is no full mini-batch; and as for :func:`curvature`.
    """
    whole = WeightLoss(model, images, classes, parameters, batch_size=batch_size, **how)
    rows = []
    for x, of in whole.batches:
        if len(x) == batch_size:
            loss = WeightLoss(model, x, of, parameters, batch_size=batch_size, **how)
            found = lanczos(loss.hessian(), random_like(loss.point, seed), max(steps, k))
            order = found.values[0].abs().argsort(descending=True)[:k]
            rows.append(torch.stack([found.values[0, order], found.errors[0, order]]))
    if not rows:
        raise ValueError(f"expected {batch_size} images, a mini-batch, or more: got {whole.count}")
    values, errors = torch.stack(rows, 1)
    return Maxima(values, errors)
