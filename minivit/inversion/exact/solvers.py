"""Two ways to solve ``function(x) = y``; the second also where ``y`` has more numbers than ``x``.

Newton-Krylov needs products with the Jacobian alone, and suits what is well conditioned, such as
residual branches. Levenberg-Marquardt needs the whole Jacobian and copes with nearly singular ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minivit.krylov import Operator, gmres, jacobian, linearise, norms, or_one

HALVINGS = 12  # of a Newton step, before an entry is given up
STUCK = 1e6  # damping, relative to the Jacobian, at which an entry is given up


@dataclass(frozen=True, eq=False)
class Preimage:
    """What was found to be mapped to ``y``, and how nearly it is, for every entry of the batch."""

    x: Tensor  # [batch, ...]
    residual: Tensor  # [batch], ‖function(x) - y‖ / ‖y‖; not divided where y is zero
    iterations: Tensor  # [batch]
    converged: Tensor  # [batch], whether the residual is at most solved(dtype)


def solved(dtype: torch.dtype) -> float:
    """The relative residual that counts as a solution: 1.8e-12 in float64, 6.4e-6 in float32."""
    return torch.finfo(dtype).eps ** 0.75


def rounding(dtype: torch.dtype) -> float:
    """The relative difference that counts as rounding alone: 1.4e-14 in float64."""
    return 64 * torch.finfo(dtype).eps


def rank_of(values: Tensor, shape: Sequence[int]) -> int:
    """How many singular values, in descending order, of a matrix of this shape are no rounding."""
    return int((values > max(shape) * torch.finfo(values.dtype).eps * values[0]).sum())


@torch.no_grad()
def relative_residual(function: Operator, x: Tensor, y: Tensor) -> Tensor:
    """``‖function(x) - y‖ / ‖y‖`` of every entry, ``[batch]``; infinite where it is not finite.

    Where ``y`` is zero, ``‖function(x) - y‖``.
    """
    residual = norms(function(x) - y) / or_one(norms(y))
    return residual.nan_to_num(nan=torch.inf)


@torch.no_grad()
def newton_krylov(function: Operator, y: Tensor, start: Tensor, steps: int = 50) -> Preimage:
    """Solves ``function(x) = y`` by Newton's method, each step found by GMRES.

    A step is halved until the residual falls. An entry stops where no step makes its residual
    smaller: at rounding, or beside a singular Jacobian, and then it has not converged.

    Args:
        function: Maps ``[batch, ...]`` to as many numbers, every entry alone.
        y: What it shall give, ``[batch, ...]``.
        start: Where to start, ``[batch, ...]``.
        steps: Newton steps at most. Default: 50.

    Returns:
        The best ``x`` met for every entry, detached, of the dtype of ``start``.

    Raises:
        ValueError: An entry of ``y`` has not as many numbers as one of ``start``.
    """
    x, active, iterations = _begin(y, start)
    residual = relative_residual(function, x, y)
    for _ in range(steps):
        at = linearise(function, x[active])
        step = gmres(at.push, y[active] - at.value, 1e-3, restart=100, iterations=100).x
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
    function: Operator, y: Tensor, start: Tensor, steps: int = 200, damping: float = 1.0
) -> Preimage:
    """Solves ``function(x) = y`` by damped Newton steps, after Levenberg (1944), Marquardt (1963).

    A step minimises ``‖J s - r‖² + μ² ‖s‖²``: Newton's for small ``μ``, a short one downhill for
    large. Where the residual falls ``μ`` shrinks, elsewhere it grows; an entry stops where it has
    grown without bound, or at rounding.

    Args:
        function: Maps ``[batch, ...]`` to as many numbers or more, every entry alone.
        y: What it shall give, ``[batch, ...]``.
        start: Where to start, ``[batch, ...]``.
        steps: Steps at most. Default: 200.
        damping: The first ``μ``, in units of the root mean square singular value of ``J``; small,
            such as 1e-8, where the start is near a solution. Default: 1.

    Returns:
        The best ``x`` met for every entry, detached, of the dtype of ``start``.

    Raises:
        ValueError: An entry of ``y`` has fewer numbers than one of ``start``.
    """
    x, active, iterations = _begin(y, start, more=True)
    residual = relative_residual(function, x, y)
    factor = torch.full_like(residual, damping)
    for _ in range(steps):
        j = jacobian(function, x[active])  # [active, m, n]
        m, n = j.shape[1:]
        mu = factor[active] * torch.linalg.matrix_norm(j) / n**0.5
        r = (y[active] - function(x[active])).flatten(1)
        # By QR of J with μ I below it: forming J^T J would square the condition number.
        q, triangle = torch.linalg.qr(torch.cat([j, mu[:, None, None] * _eye(j)], 1))
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


def _eye(matrices: Tensor) -> Tensor:
    return torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)


def _begin(y: Tensor, start: Tensor, more: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """A copy of the start, the numbers of all entries, and a count for each."""
    equations, unknowns = y[0].numel(), start[0].numel()
    if len(y) != len(start) or equations < unknowns or (equations > unknowns and not more):
        raise ValueError(
            f"there must be {'at least ' * more}as many equations as unknowns in every entry: got "
            f"y {list(y.shape)}, start {list(start.shape)}"
        )
    entries = torch.arange(len(y), device=y.device)
    return start.clone(), entries, torch.zeros_like(entries)
