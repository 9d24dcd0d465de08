"""Two inputs with one output: by Newton's method, where a function folds, or at closed ReLUs."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from vitlab.calls import expect
from vitlab.inversion import solvers
from vitlab.inversion.solvers import Numbers, levenberg_marquardt, rounding
from vitlab.krylov.products import Operator, jacobian, linearise, norms, or_one

DOUBLINGS, HALVINGS = 16, 30  # of a step, to find how far the output stays the same
SHORTEST = 1e-4  # the first step, relative to the input
Batch = Float64[Tensor, "batch ..."]  # other numbers are too coarse for "the same"


@dataclass(frozen=True, eq=False)
class Collision:
    """Pairs of inputs, and how near their outputs are, relative to the first's size unless zero."""

    first: Batch
    second: Batch
    distance: Numbers  # ‖second - first‖ / ‖first‖
    output_distance: Numbers  # ‖f(second) - f(first)‖ / ‖f(first)‖
    first_order: Numbers  # ‖J (second - first)‖ / ‖f(first)‖, as of a linear map
    # The inputs differ, the outputs do not, by 1000 times less than the first order.
    found: Bool[Tensor, " batch"]


@torch.no_grad()
def compare(function: Operator, first: Batch, second: Batch) -> Collision:
    """Measures whether pairs of inputs have the same outputs."""
    at = linearise(function, first)
    apart = second - first
    size = or_one(norms(at.value))
    distance = norms(apart) / or_one(norms(first))
    first_order = norms(at.push(apart)) / size
    output_distance = norms(linearise(function, second).value - at.value) / size
    curved = (1000 * output_distance <= first_order) | (first_order <= rounding(first.dtype))
    found = (distance > 1e-6) & (output_distance <= solvers.solved(first.dtype)) & curved
    return Collision(first, second, distance, output_distance, first_order, found)


def find_collisions(
    function: Operator, x: Batch, radius: float = 0.1, attempts: int = 10
) -> Collision:
    """Looks for other inputs with the output of ``x``: solves for it from starts near ``x``.

    Starts are ``radius`` times its size away. Where none is found, the second is ``x`` itself.
    """
    generator = torch.Generator(x.device).manual_seed(0)
    second = x.clone()
    left = torch.arange(len(x), device=x.device)
    with torch.no_grad():
        y = function(x)
    for _ in range(attempts):
        noise = torch.randn(x[left].shape, dtype=x.dtype, device=x.device, generator=generator)
        rms = x[left].square().mean(tuple(range(1, x.ndim)), keepdim=True).sqrt()
        start = x[left] + radius * noise * or_one(rms)
        trial = levenberg_marquardt(function, y[left], start, steps=50, damping=1e-8).x
        collide = compare(function, x[left], trial).found
        second[left[collide]] = trial[collide]
        left = left[~collide]
        if not len(left):
            break
    return compare(function, x, second)


@dataclass(frozen=True)
class SignChange:
    """Two inputs at which the determinant of a function's Jacobian differs in sign."""

    positive: int  # index in the batch
    negative: int  # index in the batch
    margin: float  # how certain both signs are; above 1


def sign_change(function: Operator, x: Batch, enough: float | None = None) -> SignChange | None:
    """Looks for two inputs, in float64, whose Jacobian determinants differ in sign.

    They prove that a smooth function is not injective: an injective map into as many dimensions
    keeps orientation everywhere or reverses it. Gives the pair with the widest margin, or the first
    with more than ``enough``: the smallest singular value over the rounding error that could have
    turned the sign, a unit in the last place of the largest for each dimension.
    """
    best: dict[float, tuple[float, int]] = {}  # of each sign: the widest margin, and the input's
    pair = None
    for i, entry in enumerate(x.split(1)):
        j = jacobian(function, entry)[0]
        sign = torch.linalg.slogdet(j).sign.item()
        values = torch.linalg.svdvals(j)
        margin = (values[-1] / (values[0] * (len(j) * torch.finfo(j.dtype).eps))).item()
        if margin > best.get(sign, (1.0, 0))[0]:  # at 1, rounding could turn the sign
            best[sign] = margin, i
        if {1, -1} <= best.keys():
            (up, positive), (down, negative) = best[1], best[-1]
            pair = SignChange(positive, negative, min(up, down))
            if enough is not None and pair.margin > enough:
                break
    return pair


def collide_across_fold(
    function: Operator,
    positive: Float64[Tensor, "1 ..."],
    negative: Float64[Tensor, "1 ..."],
    apart: float = 1e-2,
) -> Collision:
    """Builds a collision from two inputs where the Jacobian's determinant has different signs.

    Between them the function folds: along the direction ``v`` that its Jacobian loses, the output
    turns back. So this solves for the output further along ``v``, by ``apart`` times the input's
    size or down to a thousandth of that, from a start as far back.
    """
    ends = [positive, negative]
    signs = [_sign(function, x) for x in ends]
    expect(signs[0] * signs[1] < 0, "determinants of different signs at the two", signs)
    for _ in range(20):
        middle = (ends[0] + ends[1]) / 2
        ends[0 if _sign(function, middle) == signs[0] else 1] = middle
    lost = torch.linalg.svd(jacobian(function, middle)).Vh[:, -1].view_as(middle)  # v
    for shorter in (1, 10, 100, 1000):
        step = apart / shorter * norms(middle) * lost
        with torch.no_grad():
            y = function(middle + step)
        second = levenberg_marquardt(function, y, middle - step, steps=20, damping=1e-8).x
        pair = compare(function, middle + step, second)
        if pair.found:
            break
    return pair


def _sign(function: Operator, x: Tensor) -> float:
    return torch.linalg.slogdet(jacobian(function, x)).sign.item()


def hidden_directions(
    function: Operator, x: Float[Tensor, "1 *shape"], where: Bool[Tensor, "1 *shape"] | None = None
) -> Float[Tensor, "directions *shape"]:
    """An orthonormal basis of the null space of a function's Jacobian, or its part in a window.

    ``where`` says which numbers may move.
    """
    where = torch.ones_like(x, dtype=torch.bool) if where is None else where
    moving = where.flatten().nonzero()[:, 0]  # [n]

    def moved(step: Tensor) -> Tensor:  # [1, n] -> [1, out]
        return function(x.flatten(1).index_add(1, moving, step).view_as(x)).flatten(1)

    j = jacobian(moved, x.new_zeros(1, len(moving)))[0]  # [out, n]
    values, rows = torch.linalg.svd(j, full_matrices=len(j) < len(moving))[1:]
    rank = solvers.rank_of(values, j.shape)
    directions = x.new_zeros(len(moving) - rank, x.numel())
    directions[:, moving] = rows[rank:]
    return directions.view(-1, *x.shape[1:])


@torch.no_grad()
def collide_along(
    function: Operator, x: Float64[Tensor, "1 ..."], directions: Float64[Tensor, "directions ..."]
) -> Collision:
    """Goes as far along each direction, then its opposite, as the output stays the same."""
    ways = torch.cat([directions, -directions])
    column = [-1, *[1] * (x.ndim - 1)]
    ways = or_one(norms(x)) * ways / norms(ways).view(column)
    y = function(x)
    y = y.expand(len(ways), *y.shape[1:])

    def end(length: Tensor) -> Tensor:
        return x + length.view(column) * ways

    def same(length: Tensor) -> Tensor:
        return solvers.relative_residual(function, end(length), y) <= rounding(x.dtype)

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
