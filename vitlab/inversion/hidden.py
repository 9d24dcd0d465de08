"""Directions along which an output does not change, not even beyond first order: after ReLUs.

A ReLU with a negative input passes nothing on, and still does after a small change. Where enough of
them are closed, an input can move without any trace in the output, until one of them opens.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vitlab.inversion.collisions import Collision, compare
from vitlab.inversion.solvers import rank_of, relative_residual, rounding
from vitlab.krylov import Operator, jacobian, norms, or_one

DOUBLINGS, HALVINGS = 16, 30  # of a step, to find how far the output stays the same
SHORTEST = 1e-4  # the first step, relative to the input


def hidden_directions(
    function: Operator,
    x: Float[Tensor, "batch ..."],
    where: Bool[Tensor, "batch ..."] | None = None,
) -> Float[Tensor, "directions ..."]:
    """An orthonormal basis of the null space of a function's Jacobian, or its part in a window::

        hidden_directions(model.patch_embedding, image, window)

    A smooth function loses only the first order along these directions. Convolutions with ReLUs
    lose everything, for a stretch. Singular values count as zero up to rounding, see ``rank_of``.

    Args:
        x: One entry, ``[1, ...]``, in float64.
        where: Bool, shaped like ``x``: the numbers that may move, by default all. A Jacobian by a
            thousand or so is quick.
    """
    where = torch.ones_like(x, dtype=torch.bool) if where is None else where
    if len(x) != 1 or where.shape != x.shape:
        got = f"{list(x.shape)} and {list(where.shape)}"
        raise ValueError(f"expected one entry and a window of its shape: got {got}")
    moving = where.flatten().nonzero()[:, 0]  # [n]

    def moved(step: Tensor) -> Tensor:  # [1, n] -> [1, out]
        return function(x.flatten(1).index_add(1, moving, step).view_as(x)).flatten(1)

    j = jacobian(moved, x.new_zeros(1, len(moving)))[0]  # [out, n]
    values, rows = torch.linalg.svd(j, full_matrices=len(j) < len(moving))[1:]
    rank = rank_of(values, j.shape)
    directions = x.new_zeros(len(moving) - rank, x.numel())
    directions[:, moving] = rows[rank:]
    return directions.view(-1, *x.shape[1:])


@torch.no_grad()
def collide_along(
    function: Operator, x: Float[Tensor, "1 ..."], directions: Float[Tensor, "directions ..."]
) -> Collision:
    """Goes as far along each direction, both ways, as the output stays the same up to rounding.

    Returns pairs of ``x`` and where each walk ended: first along the directions, such as those of
    :func:`hidden_directions`, then along their opposites. Where the output changed at once, that is
    ``x`` itself.
    """
    ways = torch.cat([directions, -directions])
    column = [-1, *[1] * (x.ndim - 1)]
    ways = or_one(norms(x)) * ways / norms(ways).view(column)
    y = function(x)
    y = y.expand(len(ways), *y.shape[1:])

    def end(length: Tensor) -> Tensor:
        return x + length.view(column) * ways

    def same(length: Tensor) -> Tensor:
        return relative_residual(function, end(length), y) <= rounding(x.dtype)

    low = x.new_zeros(len(ways))
    high = low + SHORTEST
    for _ in range(DOUBLINGS):
        going = same(high)
        low, high = torch.where(going, high, low), torch.where(going, 2 * high, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        going = same(middle)
        low, high = torch.where(going, middle, low), torch.where(going, high, middle)
    return compare(function, x.expand_as(ways), end(low))
