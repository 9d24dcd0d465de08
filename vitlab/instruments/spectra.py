"""Spectra from products alone: singular values of a Jacobian, the density of a Hessian's.

The first say what a layer keeps, stretches and loses of its input, the second how many eigenvalues
of a loss's Hessian lie where.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from vitlab import krylov
from vitlab.calls import expect
from vitlab.instruments.running import Classes, Images
from vitlab.instruments.weights import WeightLoss
from vitlab.krylov.products import Batch

# Student's t: 95 % of it lies within so many units, for 1, 2, ... degrees of freedom.
T95 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of a Jacobian at every entry of a batch."""

    values: Float[Tensor, "batch values"]  # descending
    errors: Float[Tensor, "batch values"]  # how far off at most; 0 from the whole Jacobian
    shape: tuple[int, int]  # rows and columns of a Jacobian: numbers out, numbers in

    @property
    def condition(self) -> Float[Tensor, "batch"]:
        """Largest over smallest singular value; by Lanczos a lower bound."""
        return self.values[:, 0] / self.values[:, -1]

    def rank(self, tolerance: float | None = None) -> Int64[Tensor, "batch"]:
        """Counts singular values above a fraction of the largest; default: of rounding."""
        full, count = min(self.shape), self.values.shape[1]
        got = f"{count} by Lanczos; ask for dense=True"
        expect(count == full, f"all {full} singular values for a rank", got)
        if tolerance is None:
            tolerance = max(self.shape) * torch.finfo(self.values.dtype).eps
        return (self.values > tolerance * self.values[:, :1]).sum(1)


def spectrum(
    function: krylov.Operator, x: Batch, *, dense: bool | None = None, steps: int = 100
) -> Spectrum:
    """Singular values of the Jacobian of a function::

        spectrum(model.blocks[3].mlp, tokens)
        spectrum(*sublayer(model, "blocks.3.attention", images))

    The function maps each entry of a batch independently, in float64 if small singular values
    count. ``dense`` computes the whole Jacobian, by default up to 2048 numbers on its shorter side
    and 4096 on its longer; beyond, only the extremes, as many as ``steps`` of Lanczos.
    """
    krylov.check_batch(x)
    given, dtype, wide = function, x.dtype, krylov.wide(x.dtype)

    def widened(x: Tensor) -> Tensor:
        return given(x.to(dtype)).to(wide)

    function, x = widened, x.to(wide)
    with torch.no_grad():
        shape = function(x.clone())[0].numel(), x[0].numel()
    if dense is None:
        dense = min(shape) <= 2048 and max(shape) <= 4096
    if not dense:
        line = krylov.linearise(function, x)
        push, pull, like = line.push, line.pull, x
        if shape[0] < shape[1]:  # begin in the smaller space
            push, pull, like = pull, push, line.value
        ends = krylov.singular_values(push, pull, krylov.random_like(like), steps)
        return Spectrum(ends.values.to(dtype), ends.errors.to(dtype), shape)
    matrices = (krylov.finite(krylov.jacobian(function, entry)[0]) for entry in x.split(1))
    values = torch.stack([torch.linalg.svdvals(matrix) for matrix in matrices]).to(dtype)
    return Spectrum(values, torch.zeros_like(values), shape)


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
    operator: krylov.Operator, like: Float[Tensor, "1 n"], probes: int, steps: int, seed: int = 0
) -> Density:
    """The spectral density of any symmetric operator on vectors ``[1, n]``.

    For random unit ``z``, ``z^T f(A) z`` is on average the mean of ``f`` over the eigenvalues of
    ``A``, and Lanczos from ``z`` gives a quadrature rule for it.
    """
    rows = []
    for number in range(probes):
        z = krylov.random_like(like, seed * 1000 + number)
        pairs = krylov.lanczos(operator, z, steps)
        share = (pairs.vectors[0] @ (z[0] / z.norm())).square()
        rows.append(torch.stack([pairs.values[0], share, pairs.errors[0]]))
    return Density(*torch.stack(rows, 1))


def _estimate(values: Tensor) -> Estimate:
    if len(values) == 1:
        return Estimate(values.item(), float("nan"))
    quantile = T95[min(len(values) - 1, len(T95)) - 1]  # by degrees of freedom
    return Estimate(values.mean().item(), quantile * values.std().item() / len(values) ** 0.5)
