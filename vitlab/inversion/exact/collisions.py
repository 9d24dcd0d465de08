"""Two inputs with one output, found by Newton's method.

A flat direction looks like a collision: if the smallest singular value is 1e-12, a step along it
moves the output by no more. So every pair is compared with what the Jacobian alone would predict.
One case is left: in float64 a linear map that shrinks a direction below rounding, by 1e-15 say,
cannot be told from one that loses it, such as LayerNorm. Both count as collisions.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vitlab.inversion.exact.solvers import levenberg_marquardt, newton_krylov, rounding, solved
from vitlab.krylov import Operator, linearise, norms, or_one


@dataclass(frozen=True, eq=False)
class Collision:
    """Pairs of inputs, and how near their outputs are.

    Distances are relative to the first's size, and absolute where that is zero.
    """

    first: Float[Tensor, "batch ..."]
    second: Float[Tensor, "batch ..."]
    distance: Float[Tensor, " batch"]  # ‖second - first‖ / ‖first‖
    output_distance: Float[Tensor, " batch"]  # ‖f(second) - f(first)‖ / ‖f(first)‖
    first_order: Float[Tensor, " batch"]  # ‖J (second - first)‖ / ‖f(first)‖, as of a linear map
    # Whether they collide: the inputs differ by more than 1e-6, the outputs by no more than counts
    # as solved, and by 1000 times less than the first order, unless that is rounding.
    found: Bool[Tensor, " batch"]


@torch.no_grad()
def compare(
    function: Operator, first: Float[Tensor, "batch ..."], second: Float[Tensor, "batch ..."]
) -> Collision:
    """Measures whether pairs of inputs in float64 have the same outputs.

    Raises:
        TypeError: Another dtype, too coarse for what counts as equal here.
        ValueError: The shapes differ.
    """
    _check_dtype(first, second)
    if first.shape != second.shape:
        raise ValueError(
            f"expected two of one shape: got {list(first.shape)} and {list(second.shape)}"
        )
    at = linearise(function, first)
    apart = second - first
    size = or_one(norms(at.value))
    distance = norms(apart) / or_one(norms(first))
    first_order = norms(at.push(apart)) / size
    output_distance = norms(linearise(function, second).value - at.value) / size
    curved = (1000 * output_distance <= first_order) | (first_order <= rounding(first.dtype))
    found = (distance > 1e-6) & (output_distance <= solved(first.dtype)) & curved
    return Collision(first, second, distance, output_distance, first_order, found)


def _check_dtype(*inputs: Tensor) -> None:
    if any(x.dtype != torch.float64 for x in inputs):
        raise TypeError(f"expected inputs in float64: got {[x.dtype for x in inputs]}")


def find_collisions(
    function: Operator,
    x: Float[Tensor, "batch ..."],
    radius: float = 0.1,
    attempts: int = 10,
    *,
    dense: bool = False,
    seed: int = 0,
) -> Collision:
    """Looks for other inputs with the output of ``x``: solves for it from starts near ``x``.

    Where none is found, the second of the pair is ``x`` itself, at distance 0.

    Args:
        function: Gives as many numbers as it reads: an MLP of single tokens, or attention, a
            residual branch or a block of all tokens of an image.
        x: In float64.
        radius: Distance of the starts, relative to ``x``. From far starts a solution is more often
            another input, from near ones there is more often a solution.
        attempts: Starts for an entry at most.
        dense: Solve with the whole Jacobian, for functions that are small or badly conditioned.

    Raises:
        TypeError: Inputs of another dtype.
        ValueError: Fewer than one attempt.
    """
    _check_dtype(x)
    if attempts < 1:
        raise ValueError(f"there must be at least one attempt: got {attempts}")
    generator = torch.Generator(x.device).manual_seed(seed)
    second = x.clone()
    left = torch.arange(len(x), device=x.device)
    with torch.no_grad():
        y = function(x)
    for _ in range(attempts):
        noise = torch.randn(x[left].shape, dtype=x.dtype, device=x.device, generator=generator)
        start = x[left] + radius * noise * or_one(_rms(x[left]))
        if dense:
            trial = levenberg_marquardt(function, y[left], start, steps=50, damping=1e-8).x
        else:
            trial = newton_krylov(function, y[left], start).x
        found = compare(function, x[left], trial).found
        second[left[found]] = trial[found]
        left = left[~found]
        if not len(left):
            break
    return compare(function, x, second)


def _rms(x: Tensor) -> Tensor:
    """The root mean square of each entry, ``[batch, 1, ...]``."""
    return x.square().mean(tuple(range(1, x.ndim)), keepdim=True).sqrt()
