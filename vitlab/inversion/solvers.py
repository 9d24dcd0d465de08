"""Two ways to solve ``function(x) = y``: Newton-Krylov, by products with the Jacobian alone, and
Levenberg-Marquardt, which needs all of it and copes with nearly singular ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vitlab.krylov.methods import gmres
from vitlab.krylov.products import Operator, jacobian, linearise, norms, or_one

Batch = Float[Tensor, "batch ..."]
Numbers = Float[Tensor, " batch"]  # one for each entry
HALVINGS = 12  # of a Newton step, before an entry is given up
STUCK = 1e6  # damping, relative to the Jacobian, at which an entry is given up


@dataclass(frozen=True, eq=False)
class Preimage:
    """An input found for each ``y``, and how near the function brings it to ``y``."""

    x: Float[Tensor, "..."]
    residual: Float[Tensor, "*batch"]  # ‖function(x) - y‖ / ‖y‖; not divided where y is zero
    iterations: Int[Tensor, "*batch"]
    converged: Bool[Tensor, "*batch"]  # whether the residual is at most solved(dtype)


def solved(dtype: torch.dtype) -> float:
    """The relative residual that counts as a solution: 1.8e-12 in float64, 6.4e-6 in float32."""
    return torch.finfo(dtype).eps ** 0.75


def rounding(dtype: torch.dtype) -> float:
    """The relative difference that counts as rounding alone: 1.4e-14 in float64."""
    return 64 * torch.finfo(dtype).eps


def rank_of(values: Float[Tensor, " n"], shape: Sequence[int]) -> int:
    """How many singular values, in descending order, of a matrix of this shape exceed rounding."""
    return int((values > max(shape) * torch.finfo(values.dtype).eps * values[0]).sum())


@torch.no_grad()
def relative_residual(function: Operator, x: Batch, y: Batch) -> Numbers:
    """``‖function(x) - y‖ / ‖y‖``, not divided where ``y`` is zero; NaN becomes infinite."""
    return (norms(function(x) - y) / or_one(norms(y))).nan_to_num(nan=torch.inf)


@torch.no_grad()
def newton_krylov(function: Operator, y: Batch, start: Batch, steps: int = 50) -> Preimage:
    """Solves ``function(x) = y`` by Newton's method with GMRES, halving a step until it helps."""
    x = start.clone()
    active = torch.arange(len(y), device=y.device)
    iterations = torch.zeros_like(active)
    residual = relative_residual(function, x, y)
    for _ in range(steps):
        at = linearise(function, x[active])
        step = gmres(at.push, y[active] - at.value, 1e-3, restart=100, iterations=100)
        waiting = active  # entries whose step is still too long
        for k in range(HALVINGS):
            trial = x[waiting] + step / 2**k
            new = relative_residual(function, trial, y[waiting])
            better = new < (1 - 0.01 / 2**k) * residual[waiting]
            x[waiting[better]], residual[waiting[better]] = trial[better], new[better]
            iterations[waiting[better]] += 1
            waiting, step = waiting[~better], step[~better]
            if not len(waiting):
                break
        active = active[~torch.isin(active, waiting)]
        if not len(active):
            break
    return Preimage(x, residual, iterations, residual <= solved(y.dtype))


@torch.no_grad()
def levenberg_marquardt(
    function: Operator, y: Batch, start: Batch, steps: int = 200, damping: float = 1.0
) -> Preimage:
    """Solves ``function(x) = y`` by damped Newton steps, after Levenberg (1944), Marquardt (1963).

    A step minimises ``‖J s - r‖² + μ² ‖s‖²``, where ``μ`` begins as ``damping`` times the root mean
    square singular value of ``J``. ``y`` may have more numbers than ``start``.
    """
    x = start.clone()
    active = torch.arange(len(y), device=y.device)
    iterations = torch.zeros_like(active)
    residual = relative_residual(function, x, y)
    factor = torch.full_like(residual, damping)
    for _ in range(steps):
        j = jacobian(function, x[active])  # [active, m, n]
        m, n = j.shape[1:]
        mu = factor[active] * torch.linalg.matrix_norm(j) / n**0.5
        r = (y[active] - function(x[active])).flatten(1)
        # By QR of J with μ I below it: forming J^T J would square the condition number.
        diagonal = mu[:, None, None] * torch.eye(n, dtype=j.dtype, device=j.device)
        q, triangle = torch.linalg.qr(torch.cat([j, diagonal], 1))
        step = torch.linalg.solve_triangular(triangle, q[:, :m].mT @ r[..., None], upper=True)
        trial = x[active] + step.view_as(x[active])
        new = relative_residual(function, trial, y[active])
        better = new < residual[active]
        x[active[better]], residual[active[better]] = trial[better], new[better]
        iterations[active] += 1
        factor[active] *= torch.where(better, 0.2, 4.0).to(factor)
        stays = better | (residual[active] > solved(y.dtype))
        active = active[stays & (factor[active] < STUCK)]
        if not len(active):
            break
    return Preimage(x, residual, iterations, residual <= solved(y.dtype))
