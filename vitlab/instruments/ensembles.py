"""What averaging predictions does to their error: of several models, or of a model's positions.

For squared errors it is known exactly (Krogh & Vedelsby 1995, "Neural Network Ensembles, Cross
Validation, and Active Learning"): the error of the mean prediction is the mean error of the members
less their spread. So an ensemble is better than its members by as much as they disagree.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Int64, Shaped
from torch import Tensor, nn

from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import by_position, collected, patch_grid


@dataclass(frozen=True)
class Ensemble:
    """Squared errors, summed over classes, means over images; ``member = together + spread``."""

    member: float  # of one member, mean over members
    together: float  # of the mean of their predictions
    spread: float  # mean squared distance of the members' predictions from their mean
    accuracy: float  # of one member, mean over members
    together_accuracy: float


def ensemble(
    predictions: Shaped[Tensor, "members batch classes"], labels: Int64[Tensor, "batch"]
) -> Ensemble:
    """Compares several predictions of the same labels with their mean."""
    p = predictions.double()
    mean = p.mean(0)
    targets = F.one_hot(labels, p.shape[2]).double()

    def error(x: Tensor, y: Tensor) -> float:
        return (x - y).square().sum(-1).mean().item()

    def accuracy(x: Tensor) -> float:
        return (x.argmax(-1) == labels).double().mean().item()

    return Ensemble(
        error(p, targets), error(mean, targets), error(p, mean), accuracy(p), accuracy(mean)
    )


def position_ensembles(
    model: nn.Module,
    train: tuple[Shaped[Tensor, "train channels height width"], Int64[Tensor, "train"]],
    test: tuple[Shaped[Tensor, "test channels height width"], Int64[Tensor, "test"]],
    *names: str,
    penalty: float = 1e-3,
    grid: Grid | None = None,
    batch_size: int = 250,
) -> dict[str, Ensemble]:
    """The positions of a layer as members of an ensemble, at each of a model's named layers.

    A linear map with a bias, fitted by ridge regression on the training images, predicts the class
    of an image from what the layer gives in a single position; it is the same for all positions.
    Names are as for :func:`~minivit.recording.record`.

    Args:
        penalty: On the map, relative to the mean variance of the features.
        grid: Rows and columns of patches, for tokens. Default: those of the last convolution.
    """
    grid = grid or patch_grid(model, train[0])

    def positions(images: Tensor) -> dict[str, Tensor]:
        """By name, [positions, images, dim]."""
        flat = collected(model, images, names, lambda x: by_position(x, grid)[1], batch_size)
        return {name: x.flatten(1, 2).transpose(0, 1) for name, x in flat.items()}

    classes = int(max(train[1].max(), test[1].max())) + 1
    features, test_features = positions(train[0]), positions(test[0])
    return {
        name: ensemble(_fitted(x, train[1], classes, penalty)(test_features[name]), test[1])
        for name, x in features.items()
    }


def _fitted(x: Tensor, labels: Tensor, classes: int, penalty: float) -> Callable[[Tensor], Tensor]:
    """The map from features [..., dim] to [..., classes], from the products of features alone."""
    flat = x.flatten(0, 1).double()  # [positions * images, dim]
    targets = F.one_hot(labels, classes).double().repeat(len(x), 1)
    mean, level = flat.mean(0), targets.mean(0)
    flat = flat - mean
    products = flat.T @ flat
    shrink = penalty * products.diagonal().mean() * torch.eye(len(products), dtype=torch.float64)
    weight = torch.linalg.solve(products + shrink, flat.T @ (targets - level))
    return lambda y: (y.double() - mean) @ weight + level
