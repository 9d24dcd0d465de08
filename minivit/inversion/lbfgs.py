"""L-BFGS for many pictures at once: a quasi-Newton method with a memory of a hundred steps."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count

import torch
from torch import Tensor

from minivit.inversion.criterion import Match, dot

HISTORY = 100  # steps that it remembers
TRIALS = 15  # of a line search, before it is given up


def lbfgs(match: Match, x: Tensor) -> Iterator[None]:
    """L-BFGS, after Nocedal (1980), with a line search for the Wolfe conditions.

    A picture whose line search fails begins anew along the gradient. It rests, at a minimum or at
    rounding, once it has come nearer by less than a hundredth since its line search last failed, or
    within a hundred steps.
    """
    entries = match.entries
    objective, gradient = match(x, entries)
    pairs: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=HISTORY)
    # The first guess of the inverse Hessian: Polyak's step (1969) to where the objective is 0.
    scale = objective / dot(gradient, gradient)
    before = match.least.clone()  # [batch], distances a hundred steps ago
    stuck = torch.full_like(before, math.inf)  # [batch], distances where a line search last failed
    for step_number in count(1):
        direction = -inverse_hessian(gradient, pairs, scale)
        taken, objective, new = line_search(match, x, entries, objective, gradient, direction)
        step = torch.where(taken[:, None] > 0, taken[:, None] * direction, 0)  # 0, never 0 * inf
        change = new - gradient
        x, gradient = x + step, new
        curvature, steep = dot(step, change), dot(change, change)
        curved = curvature > torch.finfo(x.dtype).eps * steep * scale
        pairs.append((step, change, torch.where(curved, 1 / curvature, 0)))
        scale = torch.where(curved, curvature / steep, scale)
        failed, least = taken == 0, match.least[entries]
        going = ~match.arrived(entries) & (~failed | (least < 0.99 * stuck[entries]))
        stuck[entries[failed]] = least[failed]
        if step_number % 100 == 0:
            going &= least < 0.99 * before[entries]
            before = match.least.clone()
        for s, y, weight in pairs if failed.any() else ():
            s[failed], y[failed], weight[failed] = 0, 0, 0
        scale = torch.where(failed, objective / dot(gradient, gradient), scale)
        if not going.all():
            entries, x, objective = entries[going], x[going], objective[going]
            gradient, scale = gradient[going], scale[going]
            pairs = deque(((s[going], y[going], w[going]) for s, y, w in pairs), HISTORY)
        yield
        if not len(entries):
            return


def inverse_hessian(
    gradient: Tensor, pairs: Iterable[tuple[Tensor, Tensor, Tensor]], scale: Tensor
) -> Tensor:
    """Nocedal's two loops: the approximate inverse Hessian, times the gradient.

    ``pairs`` are steps ``s``, the changes ``y`` of the gradient along them, and ``1 / (s . y)``, or
    0 where a pair does not count.
    """
    q, seen = gradient, []
    for s, y, weight in reversed(list(pairs)):
        along = weight * dot(s, q)
        q = q - along[:, None] * y
        seen.append(along)
    q = scale[:, None] * q
    for s, y, weight in pairs:
        q = q + (seen.pop() - weight * dot(y, q))[:, None] * s
    return q


def line_search(
    match: Match,
    x: Tensor,
    entries: Tensor,
    objective: Tensor,
    gradient: Tensor,
    direction: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Looks for ``t`` that lowers the objective enough and leaves its slope flat enough.

    Between a length that is too short and one that is too long lies one that is right (Wolfe 1969).

    Returns:
        ``t``, ``[k]``, 0 where none lowered the objective; the objective there, and its gradient.
    """
    slope = dot(gradient, direction)
    taken, low, high = (
        torch.zeros_like(slope),
        torch.zeros_like(slope),
        torch.full_like(slope, math.inf),
    )
    t, objectives, gradients = torch.ones_like(slope), objective.clone(), gradient.clone()
    looking = (slope < 0).nonzero()[:, 0]
    for _ in range(TRIALS):
        i = looking
        if not len(i):
            break
        found, new = match(x[i] + t[i, None] * direction[i], entries[i])
        lower = found <= objective[i] + 1e-4 * t[i] * slope[i]  # false where not finite
        short = lower & (dot(new, direction[i]) < 0.9 * slope[i])
        taken[i[lower]], objectives[i[lower]] = t[i[lower]], found[lower]
        gradients[i[lower]] = new[lower]
        low[i[short]], high[i[~lower]] = t[i[short]], t[i[~lower]]
        t = torch.where(high.isfinite(), (low + high) / 2, 2 * t)
        looking = i[short | ~lower]
    return taken, objectives, gradients
