"""What predictions tell: the error of their mean, of models or of positions; the cue they follow.

The error of a mean prediction is the members' less their spread (Krogh & Vedelsby 1995).
"""

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Int64, Shaped
from torch import Tensor, nn

from vitlab.calls import expect
from vitlab.instruments.grids import Grid
from vitlab.instruments.probes import ridge
from vitlab.instruments.representations import Places, collected
from vitlab.instruments.running import known

Labels = Int64[Tensor, "batch"]  # a class for each image
PENALTY = 1e-3  # of the ridge regression from positions to classes


@dataclass(frozen=True)
class Ensemble:
    """Squared errors, summed over classes, means over images; ``member = together + spread``."""

    member: float  # of one member, mean over members
    together: float  # of the mean of their predictions
    spread: float  # mean squared distance of the members' predictions from their mean
    accuracy: float  # of one member, mean over members
    together_accuracy: float


def ensemble(predictions: Shaped[Tensor, "members batch classes"], labels: Labels) -> Ensemble:
    """Compares several predictions of the same labels with their mean."""
    p = predictions.double()
    mean, targets = p.mean(0), F.one_hot(known(labels, p[0]), p.shape[2]).double()
    pairs = (p, targets), (mean, targets), (p, mean)
    errors = [(x - y).square().sum(-1).mean().item() for x, y in pairs]
    right = [(x.argmax(-1) == labels).double().mean().item() for x in (p, mean)]
    return Ensemble(*errors, *right)


def position_ensembles(
    model: nn.Module,
    train: tuple[Shaped[Tensor, "train channels height width"], Int64[Tensor, "train"]],
    test: tuple[Shaped[Tensor, "test channels height width"], Int64[Tensor, "test"]],
    *names: str,
    grid: Grid | None = None,
    batch_size: int = 250,
) -> dict[str, Ensemble]:
    """The positions of a layer as members of an ensemble, at each of a model's named layers.

    A linear map, the same for all positions, predicts the class from what a single position gives,
    and is scored on the test images.
    """
    places = Places(model, train[0], grid)
    features, test_features = (
        collected(model, images, names, lambda x: places.split(x)[1].flatten(1, 2), batch_size)
        for images, _ in (train, test)
    )
    classes = int(max(train[1].max(), test[1].max())) + 1
    ensembles = {}
    for name, x in features.items():  # [images, positions, dim]
        flat = x.transpose(0, 1).flatten(0, 1).double()
        labels = known(train[1], x.new_empty(len(x), classes))
        targets = F.one_hot(labels, classes).double().repeat(x.shape[1], 1)
        fit = ridge(flat, targets, [PENALTY])
        other = test_features[name].transpose(0, 1)
        predictions = fit(other.flatten(0, 1)).unflatten(0, other.shape[:2])
        ensembles[name] = ensemble(predictions, test[1])
    return ensembles


@dataclass(frozen=True)
class CueConflict:
    """How many images with conflicting cues were classified by shape, by texture, by neither."""

    shape: int
    texture: int
    neither: int

    @property
    def share(self) -> float:
        """Decisions by shape among those by shape or texture; NaN where there are none."""
        decided = self.shape + self.texture
        return self.shape / decided if decided else float("nan")


def cue_conflict(answers: Labels, shapes: Labels, textures: Labels) -> CueConflict:
    """Counts answers by shape and by texture, after Geirhos et al. (2019).

    Images whose shape and texture belong to one class count for nothing: they show no conflict.
    """
    conflict = shapes != textures
    expect(conflict.any(), "images whose shape and texture disagree", "none")
    shape = int((answers == shapes)[conflict].sum())
    texture = int((answers == textures)[conflict].sum())
    return CueConflict(shape, texture, int(conflict.sum()) - shape - texture)
