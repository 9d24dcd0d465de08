"""What a linear map can read from a representation: ridge regression in closed form.

The penalty is chosen by leaving out each row in turn. For ridge regression that needs no refitting
(Allen 1974): the error on a row left out is its error in the full fit divided by ``1 - h``, where
``h`` is its leverage, the weight of its own target in its prediction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64, Shaped
from torch import Tensor

# In units of the mean square singular value of the features, so that their scale does not matter.
PENALTIES = tuple(10.0**k for k in range(-8, 5))


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear map with a bias, fitted to rows of features and targets."""

    weight: Float64[Tensor, "features targets"]
    bias: Float64[Tensor, "targets"]
    penalty: Float64[Tensor, "targets"]  # those chosen
    left_out: Float64[Tensor, "rows targets"]  # what a fit to the other rows predicts for each

    def __call__(self, x: Shaped[Tensor, "rows features"]) -> Float64[Tensor, "rows targets"]:
        """Predicts targets for features."""
        return x.double() @ self.weight + self.bias


def ridge(
    x: Shaped[Tensor, "rows features"],
    y: Shaped[Tensor, "rows targets"],
    penalties: Sequence[float] = PENALTIES,
    *,
    each: bool = False,
) -> Ridge:
    """Fits ``y ≈ x W + b`` with a penalty on ``W``, none on ``b``, chosen by leaving rows out.

    Args:
        penalties: What to choose from, relative to the mean square singular value of the centred
            features.
        each: Whether to choose for each target separately: where only some can be read, one penalty
            for all would be too large for those.
    """
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y) or len(x) < 3:
        raise ValueError(
            "expected features [n, features] and targets [n, targets] for three rows or more: got "
            f"{list(x.shape)} and {list(y.shape)}"
        )
    x, y = x.double(), y.double()
    if not (x.isfinite().all() and y.isfinite().all()):
        raise ValueError("expected features and targets of finite numbers: got others")
    mean, level = x.mean(0), y.mean(0)
    u, s, vt = torch.linalg.svd(x - mean, full_matrices=False)
    if s[0] <= max(x.shape) * torch.finfo(x.dtype).eps * x.norm():
        raise ValueError("nothing to read: the features are the same in all rows")
    along = u.mT @ (y - level)  # [rank, targets]
    best = y.new_full(y.shape[1:], torch.inf)  # [targets], sums of squared errors
    weight = x.new_zeros(x.shape[1], y.shape[1])
    chosen = torch.zeros_like(best)
    left_out = y
    for penalty in penalties:
        shrink = s**2 / (s**2 + penalty * s.square().mean())  # [rank]
        fit = (u * shrink) @ along  # [n, targets], less the level
        leverage = (u**2 @ shrink + 1 / len(x)).clamp(max=1 - 1e-12)[:, None]
        error = (y - level - fit) / (1 - leverage)  # of a fit to the other rows
        total = error.square().sum(0)
        better = total < best if each else (total.sum() < best.sum()).expand(best.shape)
        best = torch.where(better, total, best)
        chosen = torch.where(better, penalty, chosen)
        left_out = torch.where(better, y - error, left_out)
        solved = vt.mT @ ((shrink / s.clamp(min=1e-300))[:, None] * along)
        weight = torch.where(better, solved, weight)
    return Ridge(weight, level - mean @ weight, chosen, left_out)


def explained(
    y: Shaped[Tensor, "rows targets"], predicted: Shaped[Tensor, "rows targets"]
) -> Float64[Tensor, "targets"]:
    """``R²``, the fraction of variance explained: 1 if exact, 0 for the mean, negative if worse."""
    y, predicted = y.double(), predicted.double()
    return 1 - (y - predicted).square().sum(0) / (y - y.mean(0)).square().sum(0)
