"""Linear systems, extreme eigenvalues and singular values from products with a matrix alone."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vitlab.calls import expect
from vitlab.krylov.products import Batch, Operator, finite, norms, orthogonalise, random_like, unit

WIDE = torch.float32, torch.float64


@dataclass(frozen=True, eq=False)
class Extremes:
    """Approximate eigenvalues or singular values, and a bound on the error of each.

    The outermost converge first. With as many steps as the space has dimensions all are exact.
    """

    values: Float[Tensor, "batch steps"]  # eigenvalues ascending, singular values descending
    vectors: Float[Tensor, "batch steps ..."]  # a unit vector for each, shaped like the start
    errors: Float[Tensor, "batch steps"]  # a true value lies no farther from each than this


def lanczos(operator: Operator, start: Batch, steps: int) -> Extremes:
    """Approximates the extreme eigenvalues of a symmetric operator, after Lanczos (1950).

    Each new vector is made orthogonal to all before it; where the start, usually random, has
    reached all it can, a random direction takes over. ``steps`` are products with the operator.
    """
    basis, steps = _begin(start, steps)
    diagonal, beside = basis.new_zeros(2, len(start), steps)
    for k in range(steps):
        product = operator(basis[:, k].view_as(start)).flatten(1)
        rest, seen = orthogonalise(basis[:, : k + 1], product)
        diagonal[:, k] = seen[:, k]
        beside[:, k] = _continue(basis, k + 1, rest, product)
    edge = torch.diag_embed(beside[:, :-1], 1)
    values, mix = torch.linalg.eigh(finite(torch.diag_embed(diagonal) + edge + edge.mT))
    vectors = (mix.mT @ basis[:, :steps]).view(len(start), steps, *start.shape[1:])
    return Extremes(values, vectors, (beside[:, -1:] * mix[:, -1]).abs())


def singular_values(push: Operator, pull: Operator, start: Batch, steps: int) -> Extremes:
    """Approximates the extreme singular values of a linear map, after Golub & Kahan (1965).

    Their bidiagonalisation is Lanczos's method for the map, ``push``, and its transpose, ``pull``,
    at once: small singular values keep their digits, but are found late, and from above. The start
    is in the space that ``push`` reads, best the smaller one. ``steps`` are products with each.
    """
    right, steps = _begin(start, steps)  # [batch, steps + 1, in]
    left = right[:, :0, :0]
    diagonal, above = right.new_zeros(2, len(start), steps)
    for k in range(steps):
        image = push(right[:, k].view_as(start))
        if k == 0:
            left = right.new_zeros(len(start), steps, image[0].numel())
        rest, _ = orthogonalise(left[:, :k], image.flatten(1))
        diagonal[:, k] = _continue(left, k, rest, image.flatten(1))
        product = pull(left[:, k].view_as(image)).flatten(1)
        rest, _ = orthogonalise(right[:, : k + 1], product)
        above[:, k] = _continue(right, k + 1, rest, product)
    small = torch.diag_embed(diagonal) + torch.diag_embed(above[:, :-1], 1)
    u, values, vt = torch.linalg.svd(finite(small))  # map @ right^T = left^T @ small
    vectors = (vt @ right[:, :steps]).view(len(start), steps, *start.shape[1:])
    return Extremes(values, vectors, (above[:, -1:] * u[:, -1]).abs())


def _begin(start: Tensor, steps: int) -> tuple[Tensor, int]:
    """A basis ``[batch, steps + 1, n]`` that holds the start alone, and the steps to take."""
    fits = steps >= 1 and start.dtype in WIDE and (norms(start) > 0).all()
    got = f"{steps} and {start.dtype}"
    expect(fits, "one step or more from a nonzero start in float32 or float64", got)
    steps = min(steps, start[0].numel())
    basis = start.new_zeros(len(start), steps + 1, start[0].numel())
    basis[:, 0] = unit(start.flatten(1))
    return basis, steps


def _continue(basis: Tensor, k: int, rest: Tensor, product: Tensor) -> Tensor:
    """Puts the direction of ``rest`` into row ``k`` of the basis, and returns its length.

    Where only rounding is left, a random direction stands in, with length 0.
    """
    length = norms(rest)
    dimension = basis.shape[-1]
    ended = length <= math.sqrt(dimension) * torch.finfo(rest.dtype).eps * norms(product)
    if ended.any() and k < dimension:
        fresh, _ = orthogonalise(basis[:, :k], random_like(rest, seed=k))
        rest = torch.where(ended[:, None], fresh, rest)
    basis[:, k] = unit(rest)
    return torch.where(ended, 0, length)


def gmres(
    operator: Operator, b: Batch, tolerance: float = 1e-6, restart: int = 50, iterations: int = 500
) -> Batch:
    """Solves ``A x = b`` by the generalised minimal residual method, Saad & Schultz (1986).

    It takes the combination of ``b, A b, A² b, ...`` with the smallest residual, begins again after
    ``restart`` of them, and ends after ``iterations`` or below the tolerance, relative to ``b``.
    """
    expect(b.dtype in WIDE, "a right-hand side in float32 or float64", b.dtype)
    x = torch.zeros_like(b)
    goal = tolerance * norms(b)
    size = b[0].numel()
    used = 0
    while True:
        residual = (b - operator(x)).flatten(1) if used else b.flatten(1)
        length = norms(residual)
        if not (length > goal).any() or used >= iterations:  # NaN is given up at once
            return x
        steps = min(restart, iterations - used, size)
        basis = b.new_zeros(len(b), steps + 1, size)
        small = b.new_zeros(len(b), steps + 1, steps)  # A @ basis^T = basis^T @ small
        basis[:, 0] = unit(residual.nan_to_num())
        for k in range(steps):
            product = operator(basis[:, k].view_as(b)).flatten(1).nan_to_num()
            rest, small[:, : k + 1, k] = orthogonalise(basis[:, : k + 1], product)
            small[:, k + 1, k] = norms(rest)
            basis[:, k + 1] = unit(rest)
            used += 1
            # The smallest residual over this basis: a small least-squares problem.
            h = small[:, : k + 2, : k + 1]
            mix = torch.linalg.pinv(h)[:, :, :1] * length[:, None, None]  # [batch, k + 1, 1]
            left = length[:, None] * torch.eye(k + 2, 1, dtype=b.dtype, device=b.device)[:, 0]
            if not (norms(left - (h @ mix)[..., 0]) > goal).any():
                break
        x = x + (basis[:, : k + 1].mT @ mix).view_as(b)
