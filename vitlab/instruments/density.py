"""How many eigenvalues of the Hessian lie where: the spectral density of a loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64, Integer
from torch import Tensor, nn

from vitlab.instruments.running import Images
from vitlab.instruments.weights import WeightLoss
from vitlab.krylov import Operator, lanczos, random_like

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

    def at(self, x: Float[Tensor, "m"], width: float) -> Float64[Tensor, "m"]:
        """The mean density at ``x``, each point blurred by a Gaussian of a standard deviation."""
        z = (x.double()[:, None] - self.points.double().flatten()) / width
        heights = (-z.square() / 2).exp() / (width * (2 * torch.pi) ** 0.5)
        return heights @ self.shares.double().flatten() / len(self.points)

    def below(self, threshold: float = 0.0) -> Estimate:
        """The fraction of all eigenvalues that is below a threshold.

        At 0 it counts eigenvalues that are zero but for rounding: most of a large network's. A
        threshold a little below leaves them out; so does :attr:`negative`.
        """
        return _estimate(self._sum(self.points < threshold))

    @property
    def negative(self) -> Estimate:
        """The negative part of the sum of all absolute values. It is 0 if the loss is convex."""
        size = self.points.abs()
        return _estimate(self._sum(size * (self.points < 0)) / self._sum(size))

    @property
    def trace(self) -> Estimate:
        """The mean eigenvalue; times the number of weights, the trace (Hutchinson's estimate)."""
        return _estimate(self._sum(self.points))

    def _sum(self, of: Tensor) -> Tensor:
        return (self.shares.double() * of).sum(1)


def density(
    model: nn.Module,
    images: Images,
    classes: Integer[Tensor, "batch"],
    parameters: str | Sequence[str] | None = None,
    *,
    probes: int = 4,
    steps: int = 30,
    gauss_newton: bool = False,
    seed: int = 0,
    **how: Any,
) -> Density:
    """Spectral density of the Hessian of a classifier's loss, by stochastic Lanczos quadrature.

    After Ghorbani et al. (2019), "An Investigation into Neural Net Optimization via Hessian
    Eigenvalue Density".

    Args:
        images, classes, parameters, how: As for :class:`~vitlab.instruments.weights.WeightLoss`.
        probes: Random vectors. What they disagree in is the error.
        steps: Of Lanczos for each probe; as many points as steps.
        gauss_newton: Of the generalised Gauss-Newton matrix in place of the Hessian.
    """
    loss = WeightLoss(model, images, classes, parameters, **how)
    product = loss.gauss_newton() if gauss_newton else loss.hessian()
    return quadrature(product, loss.point, probes, steps, seed)


def quadrature(
    operator: Operator, like: Float[Tensor, "1 n"], probes: int, steps: int, seed: int = 0
) -> Density:
    """The spectral density of any symmetric operator on vectors ``[1, n]``.

    For a random unit vector ``z`` the function ``z^T f(A) z`` is on average the mean of ``f`` over
    the eigenvalues of ``A``. Lanczos from ``z`` gives a quadrature rule for it: points are the
    eigenvalues of its small matrix, and the share of each is the squared overlap of its vector
    with ``z``.
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
