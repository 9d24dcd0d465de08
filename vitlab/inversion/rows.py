"""A branch whose rows are independent, undone row by row: each row's nearest solutions."""

import itertools
from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from minivit.shapes import Tokens
from vitlab.inversion.folds import APART, SAME, SLACK
from vitlab.inversion.residual import ROW_STEPS, Branch
from vitlab.inversion.solvers import Preimage, levenberg_marquardt
from vitlab.krylov.products import jacobian, norms, random_like

SOLVED = 1e-8  # relative residual of a row
DIRECTIONS = 2  # in which a row's other solutions are looked for
FARTHER = 4.0  # times its squared distance, beyond which another solution is not looked for
STUCK, DRAWS = 4, 16  # rows, at most, that are begun again, and from how many starts
OTHERS = 4  # rows whose other solution is offered, alone and of the first three in pairs

Rows = Float[Tensor, "n m"]


@torch.no_grad()
def row_solutions(
    branch: Branch, y: Tokens, near: Tokens, whiten: Float[Tensor, "dim dim"]
) -> list[Tokens]:
    """What a branch turned into the tokens ``y`` of one image, the nearest first.

    Rows that were not found are begun again around the start, as far away as the others were found;
    none if one is lost all the same. A row's other solutions are across its nearest folds, as in
    :func:`~vitlab.inversion.folds.solutions`; the nearest of all by whitened distance is taken, and
    after it come those where one or two rows are the next nearest.
    """
    ys, starts = branch.rows(y), branch.rows(near)
    if branch.turned:  # whitening is across the channels
        whiten = torch.eye(ys.shape[1]).to(ys) / near.square().mean().sqrt()

    def solve(i: Int[Tensor, " k"], start: Rows) -> tuple[Preimage, Tensor]:
        found = levenberg_marquardt(branch.by_row, ys[i], start, ROW_STEPS, 1e-3)
        far = ((found.x - starts[i]) @ whiten).square().sum(1)
        return found, far.masked_fill(~(found.residual < SOLVED), torch.inf)

    found, far = solve(torch.arange(len(ys)), starts)
    x, stuck = found.x, far.isinf().nonzero()[:, 0]
    if len(stuck) > STUCK:
        return []
    if len(stuck):
        spread = (far[far < torch.inf].mean() / ys.shape[1]).sqrt()
        drawn = spread * random_like(starts.expand(DRAWS, -1, -1)) @ torch.linalg.inv(whiten)
        found, reached = solve(stuck.repeat(DRAWS), (starts + drawn)[:, stuck].flatten(0, 1))
        far[stuck], nearest = reached.view(DRAWS, -1).min(0)
        x[stuck] = found.x.unflatten(0, (DRAWS, -1))[nearest, torch.arange(len(stuck))]
    if far.isinf().any():
        return []
    others = list[tuple[float, int, Tensor]]()  # how much farther, which row, what instead
    for start in _across(branch, x):
        beyond = ((start - starts) @ whiten).square().sum(1)
        i = (beyond < FARTHER * far + 1).nonzero()[:, 0]
        if not len(i):
            continue
        found, reached = solve(i, start[i])
        more = (reached - far[i]).masked_fill(norms(found.x - x[i]) < SAME * norms(x[i]), torch.inf)
        others += zip(more.tolist(), i.tolist(), found.x, strict=True)
    for k, (farther, row, other) in enumerate(others):
        if farther < 0:
            others[k] = -farther, row, x[row].clone()
            x[row] = other
    others = sorted((each for each in others if each[0] < torch.inf), key=lambda each: each[0])
    singles = [(other,) for other in others[:OTHERS]]
    chosen = [(), *singles, *itertools.combinations(others[:3], 2)]
    return [branch.tokens(_with(x, some), y) for some in chosen]


def _across(branch: Branch, x: Rows) -> Iterator[Rows]:
    """Near where each row's other solutions are: NaN where no fold is near."""
    u, s, v = torch.linalg.svd(jacobian(branch.by_row, x))
    apart, here = APART * x.square().mean(1, keepdim=True).sqrt(), branch.by_row(x)
    for k in range(-1, -1 - DIRECTIONS, -1):
        ahead, behind = (branch.by_row(x + side * apart * v[:, k]) for side in (1, -1))
        q = (u[..., k] * (ahead + behind - 2 * here)).sum(1) / apart[:, 0] ** 2
        length = (-2 * s[:, k] / q).masked_fill(s[:, k] > SLACK, torch.nan)
        yield x + length[:, None] * v[:, k]


def _with(x: Rows, some: Iterable[tuple[float, int, Tensor]]) -> Rows:
    x = x.clone()
    for _, i, other in some:
        x[i] = other
    return x
