"""Two inputs with one output: found by Newton's method, built where a determinant changes its sign.

A flat direction looks like a collision: if the smallest singular value is 1e-12, a step along it
moves the output by no more. So every pair is compared with what the Jacobian alone would predict.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from minivit.inversion.exact.solvers import (
    levenberg_marquardt,
    newton_krylov,
    rounding,
    solved,
)
from minivit.krylov import Operator, jacobian, linearise, norms


@dataclass(frozen=True, eq=False)
class Collision:
    """Pairs of inputs, and how near their outputs are. Distances are relative to the first's."""

    first: Tensor  # [batch, ...]
    second: Tensor  # [batch, ...]
    distance: Tensor  # [batch], ‖second - first‖ / ‖first‖
    output_distance: Tensor  # [batch], ‖f(second) - f(first)‖ / ‖f(first)‖
    first_order: Tensor  # [batch], ‖J (second - first)‖ / ‖f(first)‖: what a linear map would give
    # [batch], whether they collide: the inputs differ by more than 1e-6, the outputs by no more
    # than counts as solved, and by 1000 times less than the first order, unless that is rounding
    found: Tensor


@torch.no_grad()
def compare(function: Operator, first: Tensor, second: Tensor) -> Collision:
    """Measures whether pairs of inputs, both ``[batch, ...]``, have the same outputs.

    Args:
        function: Maps ``[batch, ...]`` to ``[batch, ...]``, every entry alone.
        first: One input of every pair.
        second: The other.
    """
    at, apart = linearise(function, first), second - first
    size = norms(at.value)
    distance, first_order = norms(apart) / norms(first), norms(at.push(apart)) / size
    output_distance = norms(linearise(function, second).value - at.value) / size
    curved = (1000 * output_distance <= first_order) | (first_order <= rounding(first.dtype))
    found = (distance > 1e-6) & (output_distance <= solved(first.dtype)) & curved
    return Collision(first, second, distance, output_distance, first_order, found)


def find_collisions(
    function: Operator,
    x: Tensor,
    radius: float = 0.1,
    attempts: int = 10,
    *,
    dense: bool = False,
    seed: int = 0,
) -> Collision:
    """Looks for other inputs with the output of ``x``: solves for it from starts beside ``x``.

    Args:
        function: Maps ``[batch, ...]`` to as many numbers, every entry alone: tokens through an
            MLP, pictures' tokens through attention, a residual branch or a block.
        x: The inputs, ``[batch, ...]``, in float64.
        radius: How far off the starts are, relative to ``x``. Far ones find other inputs oftener,
            near ones an input at all. Default: 0.1.
        attempts: Starts for an entry at most. Default: 10.
        dense: Solve with the whole Jacobian, for what is small or badly conditioned. Default: with
            products alone.
        seed: For the starts. Default: 0.

    Returns:
        The pairs. Where none was found the second is ``x`` itself, at distance 0.
    """
    generator = torch.Generator(x.device).manual_seed(seed)
    second, left = x.clone(), torch.arange(len(x), device=x.device)
    with torch.no_grad():
        y = function(x)
    for _ in range(attempts):
        noise = torch.randn(x[left].shape, dtype=x.dtype, device=x.device, generator=generator)
        start = x[left] + radius * noise * _rms(x[left])
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
    """The root mean square of every entry, ``[batch, 1, ...]``."""
    return x.square().mean(tuple(range(1, x.ndim)), keepdim=True).sqrt()


def collide_across_fold(
    function: Operator, positive: Tensor, negative: Tensor, apart: float = 1e-2
) -> Collision:
    """Builds a collision from two inputs where the Jacobian's determinant has different signs.

    On the line between them is a point where the determinant is zero: the function folds there.
    Along the direction ``v`` that its Jacobian loses, it comes back the way it went. So the output
    of the point a little further along ``v`` is solved for, from a little back along it.

    Args:
        function: Maps ``[1, ...]`` to as many numbers.
        positive: An input, ``[1, ...]``, in float64.
        negative: Another, with the other sign of the determinant.
        apart: How far from the fold the first input is, relative to its size. Where this fails,
            because other singular values are small too, a tenth of it is tried, down to a
            thousandth. Default: 1e-2.

    Raises:
        ValueError: The signs are the same.
    """
    ends = [positive, negative]
    signs = [_sign(function, x) for x in ends]
    if signs[0] * signs[1] >= 0:
        raise ValueError(f"the determinant must have different signs at the two: got {signs}")
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


@dataclass(frozen=True)
class SignChange:
    """Two inputs at which the determinant of a function's Jacobian differs in sign."""

    positive: int  # the number of the one in the batch
    negative: int
    # How many times larger the smallest singular value of either Jacobian is than the rounding
    # error that could have turned the sign: n units in the last place of the largest.
    margin: float


def sign_change(function: Operator, x: Tensor) -> SignChange | None:
    """Looks for two inputs whose Jacobian determinants differ in sign.

    That proves that the function is not injective: a continuous injective map, of a space into one
    of as many dimensions, keeps orientation everywhere or reverses it everywhere, since its local
    degree is constant.

    Args:
        function: Maps ``[batch, ...]`` to as many numbers, every entry alone; smooth.
        x: Inputs to look at, ``[batch, ...]``, in float64; the whole Jacobian of each is computed.

    Returns:
        The pair with the widest margin; none if all that are certain have the same sign.

    Raises:
        ValueError: The function gives not as many numbers as it reads.
    """
    signs, margins = [], []
    for entry in x.split(1):
        j = jacobian(function, entry)[0]
        if j.shape[0] != j.shape[1]:
            raise ValueError(f"a determinant needs a square Jacobian: got {list(j.shape)}")
        values = torch.linalg.svdvals(j)
        signs.append(torch.linalg.slogdet(j).sign.item())
        margins.append((values[-1] / (values[0] * len(j) * torch.finfo(j.dtype).eps)).item())

    def best(sign: int) -> int | None:
        certain = [i for i, m in enumerate(margins) if m > 1 and signs[i] == sign]
        return max(certain, key=lambda i: margins[i], default=None)

    positive, negative = best(1), best(-1)
    if positive is None or negative is None:
        return None
    return SignChange(positive, negative, min(margins[positive], margins[negative]))


def search_pictures(
    function: Operator,
    image: Tensor,
    starts: Tensor,
    apart: float = 0.1,
    steps: int = 1000,
) -> Collision:
    """Looks for other pictures with the output of ``image``: a search, and no proof if it fails.

    Minimises the distance of the outputs by L-BFGS over all pictures that are at least ``apart``
    from the image, from far starts. What it returns are the nearest outputs that it met. A residual
    that does not vanish can be a local minimum or a search cut short.

    Args:
        function: From pictures to tokens, every picture alone, such as ``model.tokens``.
        image: One picture, ``[1, channels, height, width]``, in float64.
        starts: Where to start: other pictures or noise, ``[starts, channels, height, width]``.
        apart: The least distance, relative to the image. Default: 0.1.
        steps: Iterations of L-BFGS for each start. Default: 1000.

    Returns:
        For every start: the image, where the search ended, their distances. Only
        where ``found`` is true they collide.

    Raises:
        ValueError: Starts of another shape than the image, or one that is the image itself.
    """
    if len(image) != 1 or starts.shape[1:] != image.shape[1:] or not norms(starts - image).all():
        raise ValueError(
            f"expected one image and other starts of its shape: got {list(image.shape)}, "
            f"{list(starts.shape)}"
        )
    with torch.no_grad():
        y = function(image)
    least, ends = apart * norms(image), []
    for start in starts.split(1):
        offset = (start - image).requires_grad_()
        optimiser = torch.optim.LBFGS(
            [offset],
            max_iter=steps,
            history_size=100,
            tolerance_grad=0,
            tolerance_change=0,
            line_search_fn="strong_wolfe",
        )

        def outside(offset: Tensor = offset) -> Tensor:  # offsets that are too short, lengthened
            return image + offset * (least / norms(offset)).clamp(min=1)

        def closure(offset: Tensor = offset, optimiser=optimiser, outside=outside) -> Tensor:
            optimiser.zero_grad()
            loss = (function(outside()) - y).square().sum() / y.square().sum()
            offset.grad = torch.autograd.grad(loss, offset)[0]
            return loss

        optimiser.step(closure)
        ends.append(outside().detach())
    return compare(function, image.expand_as(starts), torch.cat(ends))
