"""Products with Jacobians and Hessians, and the whole Jacobian of small functions."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from vitlab.krylov.batches import Batch, Operator, check_batch


def plain_attention() -> AbstractContextManager[None]:
    """Keeps torch to its unfused attention: the fused kernel on a CPU has no second derivative."""
    return sdpa_kernel(SDPBackend.MATH)


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A function at a point ``x``: its value, and products with its Jacobian ``J`` there."""

    value: Batch
    push: Operator  # v, shaped like x          ->  J v, shaped like the value
    pull: Operator  # u, shaped like the value  ->  J^T u, shaped like x


def linearise(function: Operator, x: Batch) -> Linearisation:
    """Evaluates a function once, for any number of products with its Jacobian afterwards.

    Reverse mode gives the product with the transposed Jacobian, and reverse mode through that the
    product with the Jacobian itself, in a third of the time of forward mode.
    """
    check_batch(x)
    with torch.no_grad(), plain_attention():
        # Of a copy: a module that works in place would change x.
        value, pull, *_ = torch.func.vjp(lambda x: function(x.clone()), x)
        _, push, *_ = torch.func.vjp(lambda u: pull(u)[0], torch.zeros_like(value))
    return Linearisation(value, _product(push), _product(pull))


def _product(pull: Callable[[Tensor], tuple[Tensor]]) -> Operator:
    """The function that ``torch.func.vjp`` returned, made to build no graph."""
    return torch.no_grad()(lambda u: pull(u)[0])


def jacobian(function: Operator, x: Batch) -> Float[Tensor, "batch out in"]:
    """The Jacobian of each entry, flattened to vectors, by 64 products at once."""
    at = linearise(function, x)
    rows = at.value[0].numel() <= x[0].numel()  # as few products as there are rows, or columns
    product, like = (at.pull, at.value) if rows else (at.push, x)
    basis = torch.eye(like[0].numel(), dtype=x.dtype, device=x.device)
    vectors = basis.view(-1, 1, *like.shape[1:]).expand(-1, *like.shape)
    products = torch.func.vmap(product, chunk_size=64)(vectors).flatten(2)  # [k, batch, n]
    return products.permute((1, 0, 2) if rows else (1, 2, 0))


def hessian(function: Operator, x: Batch) -> Operator:
    """Products with the symmetric Hessian at ``x`` of a function with one number for each entry."""

    def total(x: Tensor) -> Tensor:
        return function(x).sum()

    with torch.no_grad(), plain_attention():
        _, pull, *_ = torch.func.vjp(torch.func.grad(total), x)
    return _product(pull)
