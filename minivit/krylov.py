"""Linear algebra without matrices: what products with a Jacobian or a Hessian alone can tell.

One convention holds in this file. The first axis is a batch of problems that know nothing of each
other: a function maps ``[batch, ...]`` to ``[batch, ...]`` and every entry alone, as models in
evaluation mode map pictures. One product then serves the whole batch. A single problem is a batch
of one.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

Operator = Callable[[Tensor], Tensor]  # a function of [batch, ...]; here mostly a linear one


def norms(x: Tensor) -> Tensor:
    """The length of every entry, ``[batch, ...]`` to ``[batch]``."""
    return torch.linalg.vector_norm(x.flatten(1), dim=1)


def or_one(size: Tensor) -> Tensor:
    """A size to divide by: 1 where it is zero, so that a relative measure is absolute there."""
    return torch.where(size > 0, size, 1)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype to do algebra in: float32 for half precisions, which overflow and have none."""
    return torch.promote_types(dtype, torch.float32)


def widened(function: Operator, dtype: torch.dtype) -> Operator:
    """A function that computes in ``dtype``, for algebra in :func:`wide`: cast at both doors."""
    if wide(dtype) == dtype:
        return function
    return lambda x: function(x.to(dtype)).to(wide(dtype))


def scaled(product: Operator, dtype: torch.dtype) -> Operator:
    """A linear map of ``[batch, n]`` that computes in ``dtype``, kept from overflow in half ones.

    There its products are of vectors whose largest number is 1.
    """
    if wide(dtype) == dtype:
        return product

    def function(v: Tensor) -> Tensor:
        size = or_one(v.abs().amax(1, keepdim=True))
        return product(v / size) * size

    return function


def check_batch(x: Tensor) -> None:
    """Refuses what is no batch of points to differentiate at.

    Raises:
        TypeError: No floating numbers.
        ValueError: No batch, or an empty one.
    """
    if not x.is_floating_point():
        raise TypeError(f"expected a point of floating numbers: got {x.dtype}")
    if x.ndim < 2 or not x.numel():
        raise ValueError(f"expected points [batch, ...], one entry or more: got {list(x.shape)}")


def finite(matrix: Tensor) -> Tensor:
    """The matrix of a linear map, or of its part, before it is decomposed.

    Raises:
        ValueError: Some of its numbers are not finite.
    """
    if not matrix.isfinite().all():
        raise ValueError("expected a linear map of finite numbers: got some that are not")
    return matrix


def random_like(x: Tensor, seed: int = 0) -> Tensor:
    """Standard normal numbers, shaped like ``x``: the same ones every time for a seed."""
    generator = torch.Generator(x.device).manual_seed(seed)
    return torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator)


@contextmanager
def plain_attention() -> Iterator[None]:
    """Keeps torch to its unfused attention: the fused kernel on a CPU has no second derivative."""
    with sdpa_kernel(SDPBackend.MATH):
        yield


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A function at a point ``x``: its value, and products with its Jacobian ``J`` there."""

    value: Tensor  # the function of x: [batch, ...]
    push: Operator  # v, shaped like x      ->  J v, shaped like the value
    pull: Operator  # u, shaped like value  ->  J^T u, shaped like x


def linearise(function: Operator, x: Tensor) -> Linearisation:
    """Evaluates a function once, for any number of products with its Jacobian afterwards.

    Reverse mode gives the product with the transposed Jacobian. That is linear in the vector, so
    reverse mode through it gives the product with the Jacobian itself: about a third of the time
    of forward mode, which would evaluate the function anew for every vector.

    Args:
        function: Maps ``[batch, ...]`` to ``[batch, ...]``, every entry alone.
        x: The point, ``[batch, ...]``, of a floating dtype. Parameters get no gradients.

    Raises:
        TypeError: A point of other numbers.
        ValueError: No batch, or an empty one.
    """
    check_batch(x)
    with torch.no_grad(), plain_attention():
        # Of a copy: a module that works in place would change x.
        value, pull, *_ = torch.func.vjp(lambda x: function(x.clone()), x)
        _, push, *_ = torch.func.vjp(lambda u: pull(u)[0], torch.zeros_like(value))
    return Linearisation(value, _product(push), _product(pull))


def _product(pull: Callable[[Tensor], tuple[Tensor]]) -> Operator:
    """What ``torch.func.vjp`` gives, as a function that builds no graph of its own."""
    return torch.no_grad()(lambda u: pull(u)[0])


def jacobian(function: Operator, x: Tensor, chunk: int = 64) -> Tensor:
    """Gives the whole Jacobian of every entry: for small ones.

    Args:
        function: Maps ``[batch, ...]`` to ``[batch, ...]``, every entry alone.
        x: The point, ``[batch, ...]``.
        chunk: Products computed at once; memory grows with it. Default: 64.

    Returns:
        ``[batch, out, in]``, where ``in`` and ``out`` count the numbers of an entry of ``x`` and of
        the value.

    Raises:
        TypeError, ValueError: As for :func:`linearise`.
    """
    at = linearise(function, x)
    rows = at.value[0].numel() <= x[0].numel()  # as few products as there are rows, or columns
    product, like = (at.pull, at.value) if rows else (at.push, x)
    basis = torch.eye(like[0].numel(), dtype=x.dtype, device=x.device)
    vectors = basis.view(-1, 1, *like.shape[1:]).expand(-1, *like.shape)
    products = torch.func.vmap(product, chunk_size=chunk)(vectors).flatten(2)  # [k, batch, n]
    return products.permute((1, 0, 2) if rows else (1, 2, 0))


def sign_margin(values: Tensor) -> Tensor:
    """How certain the sign of a square matrix's determinant is, ``[..., n]`` to ``[...]``.

    It is certain above 1: so many times is the smallest singular value larger than the rounding
    error that could have turned the sign, ``n`` units in the last place of the largest.

    Args:
        values: All singular values, descending.
    """
    n, rounding = values.shape[-1], torch.finfo(values.dtype).eps
    return values[..., -1] / (values[..., 0] * n * rounding)


def hessian(function: Operator, x: Tensor) -> Operator:
    """Gives products with the Hessian of a scalar function of every entry.

    Args:
        function: Maps ``[batch, ...]`` to one number for every entry, ``[batch]``.
        x: The point, ``[batch, ...]``.

    Returns:
        The symmetric operator that maps ``v``, shaped like ``x``, to ``H v``.
    """

    def total(x: Tensor) -> Tensor:
        return function(x).sum()

    with torch.no_grad(), plain_attention():
        _, pull, *_ = torch.func.vjp(torch.func.grad(total), x)
    return _product(pull)


@dataclass(frozen=True, eq=False)
class Extremes:
    """Approximate eigenvalues or singular values, and how far off each is at most.

    The outermost converge first. With as many steps as the space has dimensions all are exact.
    """

    values: Tensor  # [batch, steps]; eigenvalues ascending, singular values descending
    vectors: Tensor  # [batch, steps, ...], a unit vector for each, shaped like an entry of start
    errors: Tensor  # [batch, steps]; an eigenvalue (singular value) lies no further than this


def lanczos(operator: Operator, start: Tensor, steps: int) -> Extremes:
    """Approximates the extreme eigenvalues of a symmetric operator, after Lanczos (1950).

    Every new vector is made orthogonal to all before it, so that no eigenvalue appears twice
    because of rounding. Where the start has reached all it can, a random direction takes over.

    Args:
        operator: Symmetric, maps ``[batch, ...]`` to the same shape.
        start: Where to start, ``[batch, ...]``: nonzero, random as a rule.
        steps: Products with the operator; cut to the dimension of the space.

    Raises:
        TypeError: A start in half precision.
        ValueError: Fewer than one step, a start of zero, or products that are not finite.
    """
    basis, steps = _begin(start, steps)
    diagonal, beside = basis.new_zeros(2, len(start), steps)
    for k in range(steps):
        product = operator(basis[:, k].view_as(start)).flatten(1)
        rest, seen = _against(basis[:, : k + 1], product)
        diagonal[:, k] = seen[:, k]
        beside[:, k] = _continue(basis, k + 1, rest, product)
    edge = torch.diag_embed(beside[:, :-1], 1)
    values, mix = torch.linalg.eigh(finite(torch.diag_embed(diagonal) + edge + edge.mT))
    vectors = (mix.mT @ basis[:, :steps]).view(len(start), steps, *start.shape[1:])
    return Extremes(values, vectors, (beside[:, -1:] * mix[:, -1]).abs())


def singular_values(push: Operator, pull: Operator, start: Tensor, steps: int) -> Extremes:
    """Approximates the extreme singular values of a linear map, after Golub & Kahan (1965).

    Their bidiagonalisation is Lanczos's method for the map's two sides at once. It never forms the
    square of the map, so small singular values keep their digits. The smallest are found late,
    and from above.

    Args:
        push: The map, ``[batch, ...]`` to ``[batch, ...]``.
        pull: Its transpose.
        start: Where to start, in the space that ``push`` reads: nonzero, random as a rule. All
            singular values are exact after as many steps as this space has dimensions: swap
            ``push`` and ``pull`` where the other space is the smaller one.
        steps: Products with each; cut to that number of dimensions.

    Raises:
        TypeError: A start in half precision.
        ValueError: Fewer than one step, a start of zero, or products that are not finite.
    """
    right, steps = _begin(start, steps)  # [batch, steps + 1, in]
    left = right[:, :0, :0]
    diagonal, above = right.new_zeros(2, len(start), steps)
    for k in range(steps):
        image = push(right[:, k].view_as(start))
        if k == 0:
            left = right.new_zeros(len(start), steps, image[0].numel())
        rest, _ = _against(left[:, :k], image.flatten(1))
        diagonal[:, k] = _continue(left, k, rest, image.flatten(1))
        product = pull(left[:, k].view_as(image)).flatten(1)
        rest, _ = _against(right[:, : k + 1], product)
        above[:, k] = _continue(right, k + 1, rest, product)
    small = torch.diag_embed(diagonal) + torch.diag_embed(above[:, :-1], 1)
    u, values, vt = torch.linalg.svd(finite(small))  # map @ right^T = left^T @ small
    vectors = (vt @ right[:, :steps]).view(len(start), steps, *start.shape[1:])
    return Extremes(values, vectors, (above[:, -1:] * u[:, -1]).abs())


@dataclass(frozen=True, eq=False)
class Solution:
    """What :func:`gmres` found."""

    x: Tensor  # [batch, ...]
    residual: Tensor  # [batch], ‖A x - b‖ / ‖b‖
    iterations: int  # products with A, beside one for each restart
    converged: Tensor  # [batch], whether the residual is within the tolerance


def gmres(
    operator: Operator,
    b: Tensor,
    tolerance: float = 1e-6,
    restart: int = 50,
    iterations: int = 500,
) -> Solution:
    """Solves ``A x = b`` by the generalised minimal residual method, Saad & Schultz (1986).

    Among the combinations of ``b, A b, A² b, ...`` it takes the one with the smallest residual.

    Args:
        operator: Products with ``A``, on ``[batch, ...]``.
        b: The right-hand sides, ``[batch, ...]``.
        tolerance: Residual to reach, relative to ``b``. Default: 1e-6.
        restart: Vectors kept before it begins again from what it has. Default: 50.
        iterations: Products with ``A`` at most. Default: 500.

    Returns:
        The solution, which says of every entry whether it converged.

    Raises:
        ValueError: A restart that keeps no vector.
    """
    if restart < 1:
        raise ValueError(f"expected a restart of 1 or more: got {restart}")
    x, goal = torch.zeros_like(b), tolerance * norms(b)
    size, used = b[0].numel(), 0
    while True:
        residual = (b - operator(x)).flatten(1) if used else b.flatten(1)
        length = norms(residual)
        if not (length > goal).any() or used >= iterations:  # NaN is given up at once
            return Solution(x, length / or_one(norms(b)), used, length <= goal)
        steps = min(restart, iterations - used, size)
        basis = b.new_zeros(len(b), steps + 1, size)
        small = b.new_zeros(len(b), steps + 1, steps)  # A @ basis^T = basis^T @ small
        basis[:, 0] = _unit(residual.nan_to_num())
        for k in range(steps):
            product = operator(basis[:, k].view_as(b)).flatten(1).nan_to_num()
            rest, small[:, : k + 1, k] = _against(basis[:, : k + 1], product)
            small[:, k + 1, k] = norms(rest)
            basis[:, k + 1] = _unit(rest)
            used += 1
            # The least residual over what has been reached: a small least-squares problem.
            h = small[:, : k + 2, : k + 1]
            mix = torch.linalg.pinv(h)[:, :, :1] * length[:, None, None]  # [batch, k + 1, 1]
            left = length[:, None] * torch.eye(k + 2, 1, dtype=b.dtype, device=b.device)[:, 0]
            if not (norms(left - (h @ mix)[..., 0]) > goal).any():
                break
        x = x + (basis[:, : k + 1].mT @ mix).view_as(b)


def _unit(x: Tensor) -> Tensor:
    """Scales ``[batch, n]`` to length 1; zero stays zero."""
    return x / or_one(norms(x))[:, None]


def _against(basis: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Takes out of ``w``, ``[batch, n]``, what lies along the rows of ``basis``, ``[batch, k, n]``.

    Twice, because after once rounding leaves some of it; more often is of no use (Parlett 1980).

    Returns:
        The rest, ``[batch, n]``, and the coefficients of what was taken out, ``[batch, k]``.
    """
    taken = w.new_zeros(basis.shape[:2])
    for _ in range(2):
        along = (basis @ w[..., None])[..., 0]
        w, taken = w - (along[:, None] @ basis)[:, 0], taken + along
    return w, taken


def _begin(start: Tensor, steps: int) -> tuple[Tensor, int]:
    """Room for the basis, ``[batch, steps + 1, n]``, with the start in it, and the steps to go."""
    if steps < 1:
        raise ValueError(f"there must be at least one step: got {steps}")
    if start.dtype != wide(start.dtype):
        raise TypeError(f"expected a start in float32 or float64: got {start.dtype}")
    if not (norms(start) > 0).all():
        raise ValueError("the start of every entry must be nonzero: got one of zero")
    steps = min(steps, start[0].numel())
    basis = start.new_zeros(len(start), steps + 1, start[0].numel())
    basis[:, 0] = _unit(start.flatten(1))
    return basis, steps


def _continue(basis: Tensor, k: int, rest: Tensor, product: Tensor) -> Tensor:
    """Puts the direction of ``rest`` into row ``k`` of the basis, and returns its length.

    Where rounding is all that is left, a random direction stands in, with length 0.
    """
    length, dimension = norms(rest), basis.shape[-1]
    ended = length <= math.sqrt(dimension) * torch.finfo(rest.dtype).eps * norms(product)
    if ended.any() and k < dimension:
        fresh, _ = _against(basis[:, :k], random_like(rest, seed=k))
        rest = torch.where(ended[:, None], fresh, rest)
    basis[:, k] = _unit(rest)
    return torch.where(ended, 0, length)
