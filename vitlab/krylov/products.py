"""Products with Jacobians and Hessians, and the batches of vectors that go into them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

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
