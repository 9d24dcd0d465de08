"""Linear systems solved by products with their matrix alone."""

import torch
from jaxtyping import Float
from torch import Tensor

from vitlab.krylov.batches import Operator, norms, orthogonalise, unit


def gmres(
    operator: Operator,
    b: Float[Tensor, "batch ..."],
    tolerance: float = 1e-6,
    restart: int = 50,
    iterations: int = 500,
) -> Float[Tensor, "batch ..."]:
    """Solves ``A x = b`` by the generalised minimal residual method, Saad & Schultz (1986).

    Among the combinations of ``b, A b, A² b, ...`` it takes the one with the smallest residual. The
    tolerance is relative to ``b``; ``restart`` vectors are kept before it begins again from what it
    has, and ``iterations`` is how many products with ``A`` there are at most.
    """
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
