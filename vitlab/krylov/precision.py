"""Functions in half precision, for algebra in float32: half precisions overflow, and lack it."""

import torch
from jaxtyping import Float
from torch import Tensor

from vitlab.krylov.batches import Operator, or_one


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype to do algebra in: float32 for half precisions, otherwise the same."""
    return torch.promote_types(dtype, torch.float32)


def widened(function: Operator, dtype: torch.dtype) -> Operator:
    """A function that computes in ``dtype``, made to return :func:`wide` numbers."""
    if wide(dtype) == dtype:
        return function
    return lambda x: function(x.to(dtype)).to(wide(dtype))


def scaled(product: Operator, dtype: torch.dtype) -> Operator:
    """A linear map of ``[batch, n]`` that computes in ``dtype``, kept from overflow.

    In half precision it is applied to vectors scaled so that their largest number is 1.
    """
    if wide(dtype) == dtype:
        return product

    def function(v: Float[Tensor, "batch n"]) -> Float[Tensor, "batch m"]:
        size = or_one(v.abs().amax(1, keepdim=True))
        return product(v / size) * size

    return function
