"""Batches of vectors: lengths, projections, random starts."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from vitlab.calls import expect

Batch = Float[Tensor, "batch ..."]  # of independent entries
Operator = Callable[[Tensor], Tensor]  # a function of a batch; here mostly a linear one


def norms(x: Batch) -> Float[Tensor, " batch"]:
    """The Euclidean length of each entry."""
    return torch.linalg.vector_norm(x.flatten(1), dim=1)


def or_one(size: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """A size to divide by: 1 where it is zero, so that a relative measure is absolute there."""
    return torch.where(size > 0, size, 1)


def unit(x: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
    """Scales vectors to length 1; zero stays zero."""
    return x / or_one(norms(x))[:, None]


def orthogonalise(
    basis: Float[Tensor, "batch k n"], w: Float[Tensor, "batch n"]
) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch k"]]:
    """Splits ``w`` into the part orthogonal to the rows of ``basis`` and its coefficients there.

    It projects twice: after once, rounding leaves some of the rest (Parlett 1980).
    """
    taken = w.new_zeros(basis.shape[:2])
    for _ in range(2):
        along = (basis @ w[..., None])[..., 0]
        w = w - (along[:, None] @ basis)[:, 0]
        taken = taken + along
    return w, taken


def random_like(x: Float[Tensor, "*shape"], seed: int = 0) -> Float[Tensor, "*shape"]:
    """Standard normal numbers, shaped like ``x``, the same each time for a seed."""
    generator = torch.Generator(x.device).manual_seed(seed)
    return torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator)


def check_batch(x: Tensor) -> None:
    """Refuses what is not a batch of points to differentiate at."""
    expect(x.ndim > 1 and x.numel(), "a batch [batch, ...], one entry or more", list(x.shape))


def finite(x: Float[Tensor, "*shape"], what: str = "a linear map") -> Float[Tensor, "*shape"]:
    """The same numbers, such as a map's matrix before it is decomposed; refused if not finite."""
    expect(x.isfinite().all(), f"{what} of finite numbers", "some that are not")
    return x


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype to do algebra in: float32 for half precisions, which overflow, else the same."""
    return torch.promote_types(dtype, torch.float32)
