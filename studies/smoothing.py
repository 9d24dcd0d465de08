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
from studies.shared import inputs
from studies.shared.digit_models import plain
from studies.shared.shape_models import (
    PerPatch,
    fit,
    in_parts,
    mean_iou,
    mixed,
    new,
    shapes,
    steps_of,
)
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
NARROW, PLAIN, WIDE = 0.5, 1.0, 2.0  # widths of smoothing, in patches


def measure(row: str, rehearsal: bool) -> Figures:
    """The figures of one row; those of models of shapes are lists over the seeds."""
    if row in CIFAR10:
        return plain(of_cifar10(row, rehearsal))
    if row.startswith("more "):
        kind, seeds = row.removeprefix("more "), MORE[:1] if rehearsal else MORE
        scores = [classifying(kind, seed, rehearsal)[0]["accuracy"] for seed in seeds]
        return {"accuracy": scores}
    seeds = SEEDS[:2] if rehearsal else SEEDS
    found: dict[str, Any] = {}
    answers = []
    for seed in seeds:
        if row.startswith("longer "):
            figures = longer(row.removeprefix("longer "), seed, rehearsal)
        elif row.startswith("dense "):
            figures = dense(row.removeprefix("dense "), seed, rehearsal)
        else:
            figures, probabilities = classifying(row, seed, rehearsal)
            answers.append(probabilities)
        for key, value in figures.items():
            found.setdefault(key, []).append(value)
    if answers:
        found["together"] = vars(ensemble(torch.stack(answers), shapes("test", rehearsal)[1]))
    return plain(found)


def dense(kind: str, seed: int, rehearsal: bool) -> Figures:
    """How well a model tells the class of every patch."""
    torch.manual_seed(seed)
    images, _, patches = shapes("train", rehearsal)
    test, _, targets = shapes("test", rehearsal)
    model = PerPatch(new(kind))
    fit(model, images, patches, steps=steps_of(kind, rehearsal), seed=seed)
    answers = in_parts(model, test).argmax(1)
    right = (answers == targets).double().mean().item()
    return {"iou": mean_iou(answers, targets), "accuracy": right}


def longer(kind: str, seed: int, rehearsal: bool) -> Figures:
    """Scores after more steps; losses with the statistics of batches too, as in training."""
    torch.manual_seed(seed)
    images, labels, _ = shapes("train", rehearsal)
    test, truth, _ = shapes("test", rehearsal)
    model = new(kind)
    fit(model, images, labels, steps=2 * steps_of(kind, rehearsal), seed=seed)
    logits = in_parts(model, test)
    figures = {
        "accuracy": (logits.argmax(1) == truth).double().mean().item(),
        "loss": F.cross_entropy(logits, truth).item(),
        "train_loss": F.cross_entropy(in_parts(model, images), labels).item(),
    }
    model.train()  # BatchNorm by the batch's own statistics
    return figures | {"batch_loss": F.cross_entropy(in_parts(model, images), labels).item()}


def classifying(kind: str, seed: int, rehearsal: bool) -> tuple[Figures, Tensor]:
    """A trained classifier's scores, variances and ensembles of positions; its probabilities."""
    torch.manual_seed(seed)
    images, labels, _ = shapes("train", rehearsal)
    test, truth, _ = shapes("test", rehearsal)
    model = new(kind)
    with mixed(kind, model, images):
        fit(model, images, labels, steps=steps_of(kind, rehearsal), seed=seed)
        logits, known = in_parts(model, test), in_parts(model, images)
        figures: Figures = {
            "accuracy": (logits.argmax(1) == truth).double().mean().item(),
            "loss": F.cross_entropy(logits, truth).item(),
            "train_loss": F.cross_entropy(known, labels).item(),
            "train_accuracy": (known.argmax(1) == labels).double().mean().item(),
        }
        if kind in ("vit attention", "vit gaussian", "resnet plain"):
            figures |= variances(model, test[:500])
            sides = (images[:1000], labels[:1000]), (test[:500], truth[:500])
            positions = position_ensembles(model, *sides, *points(model), grid=grid_of(model))
            figures["positions"] = {name: vars(one) for name, one in positions.items()}
    if kind == "vit attention" and isinstance(model, ViT):
        figures["in its place"] = in_place(model, images[:500], test, truth)
    return figures, logits.softmax(1)


def grid_of(model: Model) -> tuple[int, int] | None:
    """Rows and columns of patches of a ViT or Mixer."""
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
            seen = feature_variance(model, images, f"blocks.?.{part}")
            figures |= {part: seen.values, f"{part}_square": seen.mean_square}
    return figures


def in_place(model: ViT, seen: Tensor, images: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy of a trained model with other averages in the place of its attention."""
    grid = model.config.grid
    others: dict[str, Any] = {
        f"gaussian {width}": between_patches(model, images, gaussian_smoothing(grid, width))
        for width in (NARROW, PLAIN, WIDE)
    }
    others["box 3"] = between_patches(model, images, box_blur(grid, 3))
    others["mean"] = between_patches(model, images, gaussian_smoothing(grid, torch.inf))
    others["own mean"] = mean_attention(model, seen)

    def accuracy() -> float:
        return (in_parts(model, images).argmax(1) == labels).double().mean().item()

    found = {"own": accuracy()}
    for name, weights in others.items():
        with minivit.replace(model, weights):
            found[name] = accuracy()
    nothing = minivit.remove(model, "attention")
    found["none"] = (in_parts(nothing, images).argmax(1) == labels).double().mean().item()
    return found


def of_cifar10(name: str, rehearsal: bool) -> Figures:
    """Variances of a trained model, and its accuracy with other averages in place of attention."""
    model = inputs.model(name)
    if rehearsal:
        noise = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        seen, images, labels = noise, noise, torch.arange(8)
    else:
        test = inputs.pictures("CIFAR10", 1000)
        train = inputs.pictures("CIFAR10", 500, "train")
        images, labels, seen = (
            model.preprocess(test.images),
            test.labels,
            model.preprocess(train.images),
        )
    figures = variances(model, images[::4])  # of all classes, which stand in order
    if any(isinstance(part, MultiHeadAttention) for part in model.modules()) and isinstance(
        model, ViT
    ):
        figures["in its place"] = in_place(model, seen, images, labels)
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
