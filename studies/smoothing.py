"""Does attention smooth, does smoothing make ensembles, and would another average do as well?

Small models of generated shapes, five seeds each, trained with attention, with fixed smoothing,
with a small convolution or with nothing in its place, and ResNets with and without blur and
attention; for the class of an image, or of every patch. Then the models of CIFAR-10 that come with
the package: variance through depth, and accuracy with other averages in the place of attention.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import minivit
from minivit.model import Model
from minivit.vit import MultiHeadAttention, ViT
from studies.runner.survey import Figures, Survey
from studies.shared import inputs, shape_models
from studies.shared.figures import over_seeds, plain
from studies.shared.shape_models import PerPatch, mean_iou, mixed, new, shapes
from studies.shared.training import accuracy, fit, outputs
from vitlab.instruments.ensembles import ensemble, position_ensembles
from vitlab.instruments.smoothing import (
    between_patches,
    box_blur,
    gaussian_smoothing,
    mean_attention,
)
from vitlab.instruments.variance import branch_variance, feature_variance

SEEDS = range(5)
KINDS = ("vit attention", "vit none", "vit gaussian", "vit convolution",
         "resnet plain", "resnet blur", "resnet attention")  # fmt: skip
MORE = range(5, 15)  # seeds of which scores alone are kept
LONGER = ("resnet plain", "resnet blur")  # in twice as many steps
DENSE = ("vit attention", "vit none", "resnet plain", "resnet attention")
CIFAR10 = ("cifar10_vit", "cifar10_vit_gap", "cifar10_mixer", "cifar10_resnet", "cifar10_alternet")
WIDTHS = (0.5, 1.0, 2.0)  # of smoothing, in patches


def measure(row: str) -> Figures:
    """The figures of one row; those of models of shapes are lists over the seeds."""
    if row in CIFAR10:
        return plain(of_cifar10(row))
    kind, _, name = row.partition(" ")
    if kind == "more":
        return {"accuracy": [classifying(name, seed)[0]["accuracy"] for seed in MORE]}
    if kind in ("longer", "dense"):
        measured = longer if kind == "longer" else dense
        return plain(over_seeds(measured(name, seed) for seed in SEEDS))
    figures, answers = zip(*(classifying(row, seed) for seed in SEEDS), strict=True)
    together = vars(ensemble(torch.stack(answers), shapes("test")[1]))
    return plain(over_seeds(figures) | {"together": together})


def dense(kind: str, seed: int) -> Figures:
    """How well a model tells the class of every patch."""
    torch.manual_seed(seed)
    images, _, patches = shapes("train")
    test, _, targets = shapes("test")
    model = PerPatch(new(kind))
    fit(model, images, patches, steps=steps_of(kind), seed=seed)
    answers = outputs(model, test).argmax(1)
    right = (answers == targets).double().mean().item()
    return {"iou": mean_iou(answers, targets), "accuracy": right}


def longer(kind: str, seed: int) -> Figures:
    """Scores after more steps; losses with the statistics of batches too, as in training."""
    torch.manual_seed(seed)
    images, labels, _ = shapes("train")
    test, truth, _ = shapes("test")
    model = new(kind)
    fit(model, images, labels, steps=2 * steps_of(kind), seed=seed)
    figures = {
        "accuracy": accuracy(model, test, truth),
        "loss": F.cross_entropy(outputs(model, test), truth).item(),
        "train_loss": F.cross_entropy(outputs(model, images), labels).item(),
    }
    model.train()  # BatchNorm by the batch's own statistics
    return figures | {"batch_loss": F.cross_entropy(outputs(model, images), labels).item()}


def classifying(kind: str, seed: int) -> tuple[Figures, Tensor]:
    """A trained classifier's scores, variances and ensembles of positions; its probabilities."""
    torch.manual_seed(seed)
    images, labels, _ = shapes("train")
    test, truth, _ = shapes("test")
    model = new(kind)
    with mixed(kind, model, images):
        fit(model, images, labels, steps=steps_of(kind), seed=seed)
        logits = outputs(model, test)
        figures: Figures = {
            "accuracy": accuracy(model, test, truth),
            "loss": F.cross_entropy(logits, truth).item(),
            "train_loss": F.cross_entropy(outputs(model, images), labels).item(),
            "train_accuracy": accuracy(model, images, labels),
        }
        if kind in ("vit attention", "vit gaussian", "resnet plain"):
            figures |= variances(model, test[:500])
            sides = (images[:1000], labels[:1000]), (test[:500], truth[:500])
            positions = position_ensembles(model, *sides, *points(model), grid=grid_of(model))
            figures["positions"] = {name: vars(one) for name, one in positions.items()}
    if kind == "vit attention" and isinstance(model, ViT):
        figures["in its place"] = in_place(model, images[:500], test, truth)
    return figures, logits.softmax(1)


def steps_of(kind: str) -> int:
    return shape_models.STEPS[kind.split()[0]]


def grid_of(model: Model) -> tuple[int, int] | None:
    return model.config.grid if isinstance(model, ViT) else None


def points(model: Model) -> tuple[str, ...]:
    """In a ViT the stream before and after every sub-layer, normalised; in a ResNet every map."""
    if isinstance(model, ViT):
        return ("blocks.?.norm1", "blocks.?.norm2", "norm")
    return ("stem", "blocks.?")


def variances(model: Model, images: Tensor) -> Figures:
    """Variance over positions: of every map, and where they are seen of streams and branches."""
    first = "positions" if isinstance(model, ViT) else "stem"
    maps = feature_variance(model, images, first, "blocks.?", grid=grid_of(model))
    figures = {"maps": maps.values, "maps_square": maps.mean_square}
    if isinstance(model, ViT):
        around = branch_variance(model, images, grid=grid_of(model))
        figures |= {"around": around.values, "around_square": around.mean_square}
    else:
        for part in ("shortcut", "norm2"):  # a block's skip and branch, before the ReLU
            variance = feature_variance(model, images, f"blocks.?.{part}")
            figures |= {part: variance.values, f"{part}_square": variance.mean_square}
    return figures


def in_place(model: ViT, other: Tensor, images: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy of a trained model with other averages in the place of its attention.

    ``"own mean"`` is the mean of its attention over the ``other`` images.
    """
    grid = model.config.grid
    averages: dict[str, Any] = {
        f"gaussian {width}": between_patches(model, images, gaussian_smoothing(grid, width))
        for width in WIDTHS
    }
    averages["box 3"] = between_patches(model, images, box_blur(grid, 3))
    averages["mean"] = between_patches(model, images, gaussian_smoothing(grid, torch.inf))
    averages["own mean"] = mean_attention(model, other)
    figures = {"own": accuracy(model, images, labels)}
    for name, weights in averages.items():
        with minivit.replace(model, weights):
            figures[name] = accuracy(model, images, labels)
    return figures | {"none": accuracy(minivit.remove(model, "attention"), images, labels)}


def of_cifar10(name: str) -> Figures:
    """Variances of a trained model, and its accuracy with other averages in place of attention."""
    model = inputs.model(name)
    test, train = inputs.pictures("CIFAR10", 1000), inputs.pictures("CIFAR10", 500, "train")
    images, other = model.preprocess(test.images), model.preprocess(train.images)
    figures = variances(model, images[::4])  # of all classes, which stand in order
    if isinstance(model, ViT) and any(isinstance(m, MultiHeadAttention) for m in model.modules()):
        figures["in its place"] = in_place(model, other, images, test.labels)
    return figures


STUDY = Survey(
    "smoothing",
    (
        *KINDS,
        *(f"dense {kind}" for kind in DENSE),
        *CIFAR10,
        *(f"longer {kind}" for kind in LONGER),
        *(f"more {kind}" for kind in KINDS if kind.startswith("vit")),
    ),
    measure,
    seeds=SEEDS,
)
