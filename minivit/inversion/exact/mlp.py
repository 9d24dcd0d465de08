"""An MLP on single tokens turned around: wider inside, but as many numbers out as in."""

import torch
from torch import Tensor

from minivit.inversion.exact.solvers import Preimage, levenberg_marquardt
from minivit.krylov import Operator


def invert_mlp(mlp: Operator, y: Tensor, attempts: int = 10, seed: int = 0) -> Preimage:
    """Finds tokens that an MLP maps to ``y``, every token by itself.

    The first attempt starts at zero, the others at random tokens of variance 1, such as LayerNorm
    gives. An MLP may map several tokens to one, and which of them is found depends on the start.

    Args:
        mlp: Maps ``[tokens, dim]`` to the same shape, every token alone, such as a
            :class:`~minivit.networks.vit.MLP` in evaluation mode.
        y: What it gave, ``[..., dim]``, float64 if it shall be exact.
        attempts: Starts for a token at most. Default: 10.
        seed: For the random starts. Default: 0.

    Returns:
        The best found for every token, ``[..., dim]``; what is said of each is shaped ``[...]``.

    Raises:
        ValueError: Fewer than one attempt.
    """
    if attempts < 1:
        raise ValueError(f"there must be at least one attempt: got {attempts}")
    flat = y.reshape(-1, y.shape[-1])
    generator = torch.Generator(y.device).manual_seed(seed)
    best = levenberg_marquardt(mlp, flat, torch.zeros_like(flat))
    for _ in range(attempts - 1):
        left = (~best.converged).nonzero()[:, 0]
        if not len(left):
            break
        start = torch.randn(flat[left].shape, dtype=y.dtype, device=y.device, generator=generator)
        found = levenberg_marquardt(mlp, flat[left], start)
        best.iterations[left] += found.iterations
        closer = found.residual < best.residual[left]
        for mine, new in zip(
            (best.x, best.residual, best.converged),
            (found.x, found.residual, found.converged),
            strict=True,
        ):
            mine[left[closer]] = new[closer]
    shape = y.shape[:-1]
    return Preimage(
        best.x.view_as(y),
        best.residual.view(shape),
        best.iterations.view(shape),
        best.converged.view(shape),
    )
