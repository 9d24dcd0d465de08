"""L-BFGS for many images at once: a quasi-Newton method with a memory of a hundred steps."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count

import torch
from jaxtyping import Float
from torch import Tensor

from vitlab.inversion.criterion import Entries, Match, Scalars, Vectors, dot

HISTORY = 100  # steps that it remembers
TRIALS = 15  # of a line search, before it is given up


def lbfgs(match: Match, x: Float[Tensor, "batch n"]) -> Iterator[None]:
    """L-BFGS, after Nocedal (1980), with a line search for the Wolfe conditions.

    An image whose line search fails begins anew along the gradient; it stops once its distance fell
    by less than a hundredth since that last happened, or within a hundred steps.
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
        x = x + step
        gradient = new
        curvature = dot(step, change)
        steep = dot(change, change)
        curved = curvature > torch.finfo(x.dtype).eps * steep * scale
        pairs.append((step, change, torch.where(curved, 1 / curvature, 0)))
        scale = torch.where(curved, curvature / steep, scale)
        failed = taken == 0
        least = match.least[entries]
        going = ~match.arrived(entries) & (~failed | (least < 0.99 * stuck[entries]))
        stuck[entries[failed]] = least[failed]
        if step_number % 100 == 0:
            going &= least < 0.99 * before[entries]
            before = match.least.clone()
        for s, y, weight in pairs if failed.any() else ():
            s[failed] = 0
            y[failed] = 0
            weight[failed] = 0
        scale = torch.where(failed, objective / dot(gradient, gradient), scale)
        if not going.all():
            entries, x, objective = entries[going], x[going], objective[going]
            gradient, scale = gradient[going], scale[going]
            pairs = deque(((s[going], y[going], w[going]) for s, y, w in pairs), HISTORY)
        yield
        if not len(entries):
            return


def inverse_hessian(
    gradient: Vectors, pairs: Iterable[tuple[Tensor, Tensor, Tensor]], scale: Scalars
) -> Vectors:
    """The approximate inverse Hessian times the gradient, by Nocedal's two loops.

    ``pairs`` are steps ``s``, changes ``y`` of the gradient, and ``1 / (s . y)`` or 0 for none.
    """
    q = gradient
    products = []
    for s, y, weight in reversed(list(pairs)):
        along = weight * dot(s, q)
        q = q - along[:, None] * y
        products.append(along)
    q = scale[:, None] * q
    for s, y, weight in pairs:
        q = q + (products.pop() - weight * dot(y, q))[:, None] * s
    return q


def line_search(
    match: Match,
    x: Vectors,
    entries: Entries,
    objective: Scalars,
    gradient: Vectors,
    direction: Vectors,
) -> tuple[Scalars, Scalars, Vectors]:
    """Bisects for a step length, else 0, that lowers objective and slope enough (Wolfe 1969).

    Gives it, and the objective and gradient there.
    """
    slope = dot(gradient, direction)
    taken = torch.zeros_like(slope)
    low = torch.zeros_like(slope)
    high = torch.full_like(slope, math.inf)
    t = torch.ones_like(slope)
    objectives = objective.clone()
    gradients = gradient.clone()
    i = (slope < 0).nonzero()[:, 0]
    for _ in range(TRIALS):
        if not len(i):
            break
        value, new = match(x[i] + t[i, None] * direction[i], entries[i])
        lower = value <= objective[i] + 1e-4 * t[i] * slope[i]  # false where not finite
        short = lower & (dot(new, direction[i]) < 0.9 * slope[i])
        taken[i[lower]] = t[i[lower]]
        objectives[i[lower]] = value[lower]
        gradients[i[lower]] = new[lower]
        low[i[short]] = t[i[short]]
        high[i[~lower]] = t[i[~lower]]
        t = torch.where(high.isfinite(), (low + high) / 2, 2 * t)
        i = i[short | ~lower]
    return taken, objectives, gradients
