"""What a linear map can read from each layer: ridge regression, and probes of classes by it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64, Int64, Shaped
from torch import Tensor, nn

from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import Places, collected
from vitlab.instruments.running import expect

# In units of the mean square singular value of the features, so that their scale does not matter.
PENALTIES = tuple(10.0**k for k in range(-8, 5))
Inputs = Shaped[Tensor, "rows features"]
Targets = Shaped[Tensor, "rows targets"]


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear map with a bias, fitted to rows of features and targets."""

    weight: Float64[Tensor, "features targets"]
    bias: Float64[Tensor, "targets"]
    penalty: Float64[Tensor, "targets"]  # those chosen
    left_out: Float64[Tensor, "rows targets"]  # what a fit to the other rows predicts for each

    def __call__(self, x: Inputs) -> Float64[Tensor, "rows targets"]:
        """Predicts targets for features."""
        return x.double() @ self.weight + self.bias


def ridge(
    x: Inputs, y: Targets, penalties: Sequence[float] = PENALTIES, *, each: bool = False
) -> Ridge:
    """Fits ``y ≈ x W + b`` with a penalty on ``W``, chosen by leaving rows out.

    Penalties are relative to the mean square singular value of the centred features; ``each``
    chooses one for each target, where only some can be read.
    """
    x, y = x.double(), y.double()
    got = f"{list(x.shape)} and {list(y.shape)}"
    expect(len(x) == len(y) > 2, "features [n, ...] and targets [n, ...], three rows or more", got)
    mean, level = x.mean(0), y.mean(0)
    u, s, vt = torch.linalg.svd(x - mean, full_matrices=False)
    if s[0] <= max(x.shape) * torch.finfo(x.dtype).eps * x.norm():
        raise ValueError("nothing to read: the features are the same in all rows")
    along = u.mT @ (y - level)  # [rank, targets]
    best = y.new_full(y.shape[1:], torch.inf)  # [targets], sums of squared errors
    weight, chosen, left_out = x.new_zeros(x.shape[1], y.shape[1]), torch.zeros_like(best), y
    for penalty in penalties:
        shrink = s**2 / (s**2 + penalty * s.square().mean())  # [rank]
        fit = (u * shrink) @ along  # [n, targets], less the level
        leverage = (u**2 @ shrink + 1 / len(x)).clamp(max=1 - 1e-12)[:, None]
        error = (y - level - fit) / (1 - leverage)  # of a fit to the other rows: Allen (1974)
        total = error.square().sum(0)
        better = total < best if each else (total.sum() < best.sum()).expand(best.shape)
        best = torch.where(better, total, best)
        chosen = torch.where(better, penalty, chosen)
        left_out = torch.where(better, y - error, left_out)
        solved = vt.mT @ ((shrink / s.clamp(min=1e-300))[:, None] * along)
        weight = torch.where(better, solved, weight)
    return Ridge(weight, level - mean @ weight, chosen, left_out)


def explained(y: Targets, predicted: Targets) -> Float64[Tensor, "targets"]:
    """``R²``, the fraction of variance explained: 1 if exact, 0 for the mean, negative if worse."""
    y, predicted = y.double(), predicted.double()
    return 1 - (y - predicted).square().sum(0) / (y - y.mean(0)).square().sum(0)


@dataclass(frozen=True)
class Probe:
    """How well a linear classifier reads one layer."""

    accuracy: float  # on the test images, which no choice has seen
    validation: float  # on the training images, each left out of the fit in turn
    penalty: float  # chosen by validation


def probe(
    train: tuple[Float[Tensor, "train features"], Int64[Tensor, "train"]],
    test: tuple[Float[Tensor, "test features"], Int64[Tensor, "test"]],
) -> Probe:
    """Fits and scores a linear classifier, after Alain & Bengio (2016): ridge regression to one-hot
    classes from features divided by their standard deviations.
    """
    (x, labels), (x_test, test_labels) = train, test
    classes = labels.unique().tolist()
    fits = len(x) == len(labels) and len(classes) > 1 and classes[0] >= 0
    got = f"{len(labels)} of the classes {classes}"
    expect(fits, f"a class for each of {len(x)} rows of features, two classes or more", got)
    std = x.double().std(0)
    std = torch.where(std > 0, std, 1)
    fit = ridge(x / std, F.one_hot(labels, int(labels.max()) + 1))
    right = fit(x_test / std).argmax(1) == test_labels
    known = fit.left_out.argmax(1) == labels
    return Probe(right.double().mean().item(), known.double().mean().item(), fit.penalty[0].item())


def probes(
    model: nn.Module,
    train: tuple[Shaped[Tensor, "train channels height width"], Int64[Tensor, "train"]],
    test: tuple[Shaped[Tensor, "test channels height width"], Int64[Tensor, "test"]],
    *names: str,
    grid: Grid | None = None,
    batch_size: int = 256,
) -> dict[str, Probe]:
    """Fits and scores a :func:`probe` of the patches' mean at each of a model's layers.

    As in ``probes(model, (images, labels), (test_images, test_labels), "blocks.?")``.
    """
    places = Places(model, train[0], grid)

    def mean(x: Tensor) -> Tensor:
        return x if x.ndim == 2 else places.split(x)[1].flatten(1, 2).mean(1)

    features = collected(model, train[0], names, mean, batch_size)
    unseen = collected(model, test[0], names, mean, batch_size)
    return {name: probe((x, train[1]), (unseen[name], test[1])) for name, x in features.items()}
