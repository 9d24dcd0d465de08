"""Ways to change images so that their activations meet a target; L-BFGS is in ``lbfgs.py``.

All are generators that take one step at a time, of images ``x``, ``[k, n]``; ``entries`` are the
indices in the batch of those that still move.
"""

from collections.abc import Iterable, Iterator
from itertools import count

import torch
from jaxtyping import Float
from torch import Tensor

from vitlab.inversion.criterion import Match, dot
from vitlab.inversion.paintings import blurred
from vitlab.krylov.methods import singular_values
from vitlab.krylov.products import Linearisation, norms, random_like

TRIALS = 15  # lengths of a Gauss-Newton step, before it is given up
PRODUCTS = 200  # of a Gauss-Newton step, at most


def gradient_descent(
    match: Match, x: Float[Tensor, "batch n"], step_size: float | None, blurs: Iterable[float]
) -> Iterator[None]:
    """``x <- blur(x - ε g)``, where ``g`` is the gradient of the feature distance.

    With a step size this is the source's rule. By default ``ε`` is the distance over the square of
    the Jacobian's largest singular value at the start.
    """
    entries = match.entries
    if step_size is None:
        at, _ = match.linearised(x, entries)
        largest = singular_values(at.push, at.pull, random_like(x), steps=20).values[:, :1]
        for _ in range(20):
            match.again(entries)
    for blur in blurs:
        objective, gradient = match(x, entries)  # gradient of half the square: distance * g
        match.check(entries)
        going = ~match.arrived(entries)
        entries, x, gradient = entries[going], x[going], gradient[going]
        if not len(entries):
            return
        if step_size is None:
            largest = largest[going]
            x = x - gradient / largest**2
        else:
            x = x - step_size * gradient / (2 * objective[going, None]).sqrt()
        x = blurred(x.view(-1, *match.shape), blur).flatten(1) if blur else x
        yield


def adam(match: Match, x: Float[Tensor, "batch n"], step_size: float) -> Iterator[None]:
    """Adam, Kingma & Ba (2015), with its usual constants."""
    entries = match.entries
    mean = torch.zeros_like(x)
    square = torch.zeros_like(x)
    for step in count(1):
        _, gradient = match(x, entries)
        match.check(entries)
        going = ~match.arrived(entries)
        entries, x, gradient = entries[going], x[going], gradient[going]
        if not len(entries):
            return
        mean = mean[going].lerp(gradient, 0.1)
        square = square[going].lerp(gradient**2, 0.001)
        root = (square / (1 - 0.999**step)).sqrt()
        tiny = torch.finfo(x.dtype).tiny ** 0.5  # not 1e-8: gradients may be as small
        x = x - step_size * mean / (1 - 0.9**step) / (root + tiny)
        yield


def gauss_newton(match: Match, x: Float[Tensor, "batch n"]) -> Iterator[None]:
    """Steps to where the linearised function is nearest to the target, halved until nearer."""
    entries = match.entries
    x = x.clone()
    while len(entries):
        at, difference = match.linearised(x, entries)
        match.check(entries)
        step = _least_squares(at, difference, match, entries)
        distance = norms(difference)
        waiting = torch.arange(len(entries), device=x.device)
        for k in range(TRIALS):
            trial = x[waiting] + step[waiting] / 2**k
            objective, _ = match(trial, entries[waiting])
            better = (2 * objective).sqrt() < (1 - 0.01 / 2**k) * distance[waiting]
            x[waiting[better]] = trial[better]
            waiting = waiting[~better]
            if not len(waiting):
                break
        going = ~match.arrived(entries)
        going[waiting] = False
        entries, x = entries[going], x[going]
        yield


def _least_squares(at: Linearisation, b: Tensor, match: Match, entries: Tensor) -> Tensor:
    """The ``s`` of least ``‖J s - b‖``, by conjugate gradients (Hestenes & Stiefel 1952)."""
    direction = normal = at.pull(b)
    s = torch.zeros_like(normal)
    size = dot(normal, normal)
    goal = 1e-4 * size
    for _ in range(PRODUCTS):
        going = size > goal
        if not going.any():
            break
        image = at.push(direction)
        length = torch.where(going, size / dot(image, image), 0)[:, None]
        s = s + length * direction
        b = b - length * image
        normal = at.pull(b)
        new = dot(normal, normal)
        direction = normal + torch.where(going, new / size, 0)[:, None] * direction
        size = torch.where(going, new, size)
        match.again(entries[going])
    return s
