"""Where a function folds: a determinant with two signs proves it, and gives a collision."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vitlab.inversion.exact.collisions import Collision, compare
from vitlab.inversion.exact.solvers import levenberg_marquardt
from vitlab.krylov import Operator, jacobian, norms, sign_margin


@dataclass(frozen=True)
class SignChange:
    """Two inputs at which the determinant of a function's Jacobian differs in sign."""

    positive: int  # index in the batch
    negative: int  # index in the batch
    margin: float  # the smaller of the two values of vitlab.krylov.sign_margin; above 1


def sign_change(
    function: Operator, x: Float[Tensor, "batch ..."], enough: float | None = None
) -> SignChange | None:
    """Looks for two inputs, in float64, whose Jacobian determinants differ in sign.

    They prove that a smooth function is not injective: a continuous injective map into a space of
    as many dimensions keeps orientation everywhere or reverses it everywhere, since its local
    degree is constant. Returns the pair with the widest margin; none if all certain signs agree.

    Args:
        enough: A margin that settles it: the search ends with the first pair beyond it.

    Raises:
        ValueError: The function does not give as many numbers as it reads.
    """
    best: dict[float, tuple[float, int]] = {}  # of each sign: the widest margin, and the input's
    for i, entry in enumerate(x.split(1)):
        j = jacobian(function, entry)[0]
        if j.shape[0] != j.shape[1]:
            raise ValueError(f"a determinant needs a square Jacobian: got {list(j.shape)}")
        sign = torch.linalg.slogdet(j).sign.item()
        margin = sign_margin(torch.linalg.svdvals(j)).item()
        if margin > best.get(sign, (1.0, 0))[0]:  # at 1, rounding could turn the sign
            best[sign] = margin, i
        found = _pair(best)
        if found is not None and enough is not None and found.margin > enough:
            break
    return _pair(best)


def _pair(best: dict[float, tuple[float, int]]) -> SignChange | None:
    if not {1, -1} <= best.keys():
        return None
    (up, positive), (down, negative) = best[1], best[-1]
    return SignChange(positive, negative, min(up, down))


def collide_across_fold(
    function: Operator, positive: Tensor, negative: Tensor, apart: float = 1e-2
) -> Collision:
    """Builds a collision from two inputs where the Jacobian's determinant has different signs.

    The determinant is zero somewhere on the line between them: the function folds there. Along the
    direction ``v`` that its Jacobian loses, the output turns back. So this takes the output a
    little further along ``v``, and solves for another input from a start a little back along ``v``.

    Args:
        positive: One input, ``[1, ...]``, in float64.
        negative: Another, where the determinant has the other sign.
        apart: Distance of the first input from the fold, relative to its size. Where this fails
            because other singular values are small too, a tenth of it is tried, down to a
            thousandth.

    Raises:
        TypeError: Inputs of another dtype.
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
