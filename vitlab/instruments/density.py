"""How many eigenvalues of the Hessian lie where: the spectral density of a loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitlab.instruments.running import Classes, Images
from vitlab.instruments.weights import WeightLoss
from vitlab.krylov.batches import Operator, random_like
from vitlab.krylov.methods import lanczos

# Student's t: 95 % of it lies within so many units, for 1, 2, ... degrees of freedom.
T95 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True)
class Estimate:
    """A mean over random probes, and half the width of its 95 % interval over them."""

    mean: float
    half: float  # NaN for a single probe


@dataclass(frozen=True, eq=False)
class Density:
    """The spectral density of a symmetric matrix, as each random probe sees it.

    A probe's density is a row of points, each a fraction of all eigenvalues; they add up to 1.
    """

    points: Float[Tensor, "probes steps"]  # ascending
    shares: Float[Tensor, "probes steps"]
    errors: Float[Tensor, "probes steps"]  # a true eigenvalue lies no farther from each point

    def below(self, threshold: float = 0.0) -> Estimate:
        """The fraction of all eigenvalues below a threshold; at 0 it counts rounding errors."""
        return _estimate((self.shares.double() * (self.points < threshold)).sum(1))

    @property
    def negative(self) -> Estimate:
        """The negative part of the sum of all absolute values. It is 0 if the loss is convex."""
        size = self.shares.double() * self.points.abs()
        return _estimate((size * (self.points < 0)).sum(1) / size.sum(1))


def density(
    model: nn.Module,
    images: Images,
    classes: Classes,
    parameters: str | Sequence[str] | None = None,
    *,
    probes: int = 4,
    steps: int = 30,
    gauss_newton: bool = False,
    seed: int = 0,
    **how: Any,
) -> Density:
    """Spectral density of the Hessian of a classifier's loss, after Ghorbani et al. (2019).

    ``probes`` are random vectors, what they disagree in is the error, and each has as many points
    as ``steps`` of Lanczos. Others are as for :func:`~vitlab.instruments.curvature.curvature`.
    """
    loss = WeightLoss(model, images, classes, parameters, **how)
    product = loss.gauss_newton() if gauss_newton else loss.hessian()
    return quadrature(product, loss.point, probes, steps, seed)


def quadrature(
    operator: Operator, like: Float[Tensor, "1 n"], probes: int, steps: int, seed: int = 0
) -> Density:
    """The spectral density of any symmetric operator on vectors ``[1, n]``.

    For random unit ``z``, ``z^T f(A) z`` is on average the mean of ``f`` over the eigenvalues of
    ``A``, and Lanczos from ``z`` gives a quadrature rule for it.
    """
    rows = []
    for number in range(probes):
        z = random_like(like, seed * 1000 + number)
        pairs = lanczos(operator, z, steps)
        share = (pairs.vectors[0] @ (z[0] / z.norm())).square()
        rows.append(torch.stack([pairs.values[0], share, pairs.errors[0]]))
    return Density(*torch.stack(rows, 1))


def _estimate(values: Tensor) -> Estimate:
    if len(values) == 1:
        return Estimate(values.item(), float("nan"))
    quantile = T95[min(len(values) - 1, len(T95)) - 1]  # by degrees of freedom
    return Estimate(values.mean().item(), quantile * values.std().item() / len(values) ** 0.5)
