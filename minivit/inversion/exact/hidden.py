"""Directions along which an output does not change, not even beyond first order: behind ReLUs.

A ReLU that is closed passes nothing on, and stays closed for a while. Where enough of them are
closed, an input can move without any trace in the output, until one of them opens.
"""

import torch
from torch import Tensor

from minivit.inversion.exact.collisions import Collision, compare
from minivit.inversion.exact.solvers import rank_of, relative_residual, rounding
from minivit.krylov import Operator, jacobian, norms, or_one

DOUBLINGS, HALVINGS = 16, 30  # of a step, to find how far the output stays the same
SHORTEST = 1e-4  # the first step, relative to the input


def hidden_directions(function: Operator, x: Tensor, where: Tensor | None = None) -> Tensor:
    """Gives the null space of a function's Jacobian, or its part within a window::

        hidden_directions(model.patch_embedding, image, window)

    Of a smooth function it is the first order alone that is lost there. Of convolutions and ReLUs
    it is everything, for a stretch.

    Args:
        function: Maps ``[1, ...]`` to ``[1, ...]``, such as a module in evaluation mode.
        x: Where, ``[1, ...]``, in float64.
        where: The numbers that may move, bool, shaped like ``x``. The Jacobian by all of them is
            computed, so a thousand or so are quick. Default: all.

    Returns:
        Orthonormal directions, ``[k, ...]``, zero where nothing may move. Singular values count as
        zero up to ``n`` units in the last place of the largest, ``n`` its larger side.

    Raises:
        ValueError: More entries than one, or a window of another shape or kind, or an empty one.
    """
    where = torch.ones_like(x, dtype=torch.bool) if where is None else where
    if len(x) != 1 or where.shape != x.shape or where.dtype != torch.bool or not where.any():
        raise ValueError(
            "expected one entry and a bool window of its shape, not empty: got "
            f"{list(x.shape)} and {list(where.shape)}, {where.dtype}"
        )
    places = where.flatten().nonzero()[:, 0]  # [n]

    def moved(step: Tensor) -> Tensor:  # [1, n] -> [1, out]
        return function(x.flatten(1).index_add(1, places, step).view_as(x)).flatten(1)

    j = jacobian(moved, x.new_zeros(1, len(places)))[0]  # [out, n]
    values, rows = torch.linalg.svd(j, full_matrices=len(j) < len(places))[1:]
    rank = rank_of(values, j.shape)
    found = x.new_zeros(len(places) - rank, x.numel())
    found[:, places] = rows[rank:]
    return found.view(-1, *x.shape[1:])


@torch.no_grad()
def collide_along(function: Operator, x: Tensor, directions: Tensor) -> Collision:
    """Goes as far along each direction, both ways, as the output stays the same, to rounding.

    Args:
        function: As for :func:`hidden_directions`.
        x: Where from, ``[1, ...]``, in float64.
        directions: Such as that function gives, ``[k, ...]``.

    Returns:
        The pairs of ``x`` and where each walk ended, ``[2 k, ...]``: the directions, then their
        opposites. Where the output changed at once, ``x`` itself.

    Raises:
        TypeError: An input of another dtype.
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
