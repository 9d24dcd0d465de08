"""Does attention smooth, does smoothing make ensembles, and would another average do as well?

Small models of generated shapes, trained with attention or with something else in its place, and
ResNets with and without blur and attention; ``1 x`` and ``3 x``: for as many steps, at the best of
bracketed rates. Then the shipped models of CIFAR-10: variance through depth, and accuracy with
other averages in the place of attention.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.metrics import jaccard_score
from torch import Tensor

import minivit
from minivit.model import Model
from minivit.parts import local_mask
from minivit.vit import ViT
from studies.runner.survey import Figures, Survey, over_seeds, plain
from studies.shared import inputs
from studies.shared.lengths import TIMES, after
from studies.shared.shape_models import PerPatch, classifier, mixed, new, shapes, steps_of
from studies.shared.training import accuracy, fit, outputs
from vitlab.instruments.ensembles import ensemble, position_ensembles
from vitlab.instruments.smoothing import between_patches, gaussian_smoothing, mean_attention
from vitlab.instruments.variance import branch_variance, feature_variance

SEEDS = range(5)
KINDS = ("vit attention", "vit none", "vit gaussian", "vit convolution",
         "resnet plain", "resnet blur", "resnet attention")  # fmt: skip
TOGETHER = ("vit attention", "vit gaussian", "vit none", "resnet plain")  # also as ensembles
MORE = range(10)  # of ViTs of the class of an image, of which a share is taken
DENSE = ("vit attention", "vit none", "resnet plain", "resnet attention")
COMPARED = *KINDS, *(f"dense {kind}" for kind in DENSE)
CIFAR10 = ("cifar10_vit", "cifar10_vit_gap", "cifar10_resnet", "cifar10_alternet")
WIDTHS = (0.5, 1.0, 2.0)  # of smoothing, in patches


def of_shapes(kind: str) -> Figures:
    """A kind of model of shapes, by seed, and all of its seeds together as an ensemble."""
    figures, answers = zip(*(classifying(kind, seed) for seed in SEEDS), strict=True)
    together = ensemble(torch.stack(answers), shapes("test")[1])
    return over_seeds(figures) | {"together": vars(together)}


def compared(kind: str, times: int) -> Figures:
    """Scores after ``times`` as many steps; of ``dense`` kinds in telling the class of patches."""
    seeds = SEEDS if "resnet" in kind or "dense" in kind else MORE
    figures = after(times, partial(trained, kind, times), seeds, "smoothing", kind)
    return figures | {"steps": times * steps_of(kind.removeprefix("dense "))}


def trained(kind: str, times: int, rate: float, seed: int) -> Figures:
    """Scores of a trained model; of ``dense`` ones the mean intersection over union, too."""
    torch.manual_seed(seed)
    of_patches, kind = "dense" in kind, kind.removeprefix("dense ")
    model: Any = PerPatch(new(kind)) if of_patches else new(kind)
    parts = {part: shapes(part)[:: 1 + of_patches][:2] for part in ("train", "validation", "test")}
    loss, right = {}, {}
    with mixed(kind, model, parts["train"][0]):
        steps = times * steps_of(kind)
        fit(model, *parts["train"], steps=steps, seed=seed, rate=rate)
        for part, (images, targets) in parts.items():  # the test part last
            logits = outputs(model, images)
            loss[part] = F.cross_entropy(logits, targets)
            right[part] = (logits.argmax(1) == targets).double().mean()
    figures = {"accuracy": right["test"], "validation": right["validation"]}
    figures |= {
        "likelihood": -loss["validation"],
        "loss": loss["test"],
        "train_loss": loss["train"],
    }
    if of_patches:  # over the classes: patches in both over patches in either
        answers = logits.argmax(1).flatten()
        figures["iou"] = jaccard_score(targets.flatten(), answers, average="macro")
    return plain(figures)


def classifying(kind: str, seed: int) -> tuple[Figures, Tensor]:
    """Of a trained ViT and ResNet variances and ensembles of positions; of all probabilities."""
    (images, labels, _), (test, truth, _) = shapes("train"), shapes("test")
    model: Any = classifier(kind, seed)
    with mixed(kind, model, images):
        answers = outputs(model, test).softmax(1)
    if kind not in ("vit attention", "resnet plain"):
        return {}, answers
    figures = variances(model, test[:500])
    sides = (images[:1000], labels[:1000]), (test[:500], truth[:500])
    # In a ViT before and after every sub-layer, normalised; in a ResNet every map.
    at = ["blocks.?.norm1", "blocks.?.norm2", "norm"]
    at = at if isinstance(model, ViT) else ["stem", "blocks.?"]
    positions = position_ensembles(model, *sides, *at, grid=grid_of(model))
    figures["positions"] = {name: vars(p) for name, p in positions.items()}
    if isinstance(model, ViT):
        figures["in its place"] = in_place(model, images[:500], test, truth)
    return figures, answers


def grid_of(model: Model) -> tuple[int, int] | None:
    return model.config.grid if isinstance(model, ViT) else None


def variances(model: Model, images: Tensor) -> Figures:
    """Variance over positions: of every map, and where they are seen of streams and branches."""
    first = "positions" if isinstance(model, ViT) else "stem"
    maps = feature_variance(model, images, first, "blocks.?", grid=grid_of(model)).values
    if not isinstance(model, ViT):
        return {"maps": maps}
    around = branch_variance(model, images, grid=grid_of(model))
    return {"maps": maps, "around": around.values, "around_square": around.mean_square}


def in_place(model: ViT, other: Tensor, images: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy with averages in the place of attention; ``other`` images give its own mean."""
    grid = model.config.grid
    kernels = {f"gaussian {width}": gaussian_smoothing(grid, width) for width in WIDTHS}
    near = local_mask(grid, 3).double()
    kernels["box 3"] = near / near.sum(1, keepdim=True)
    kernels["mean"] = gaussian_smoothing(grid, torch.inf)
    averages: dict[str, Any] = {
        name: between_patches(model, images, kernel) for name, kernel in kernels.items()
    }
    averages["own mean"] = mean_attention(model, other)
    figures = {"own": accuracy(model, images, labels)}
    for name, weights in averages.items():
        with minivit.replace(model, weights):
            figures[name] = accuracy(model, images, labels)
    return figures | {"none": accuracy(minivit.remove(model, "attention"), images, labels)}


def of_cifar10(name: str) -> Figures:
    """Variances of a trained model, and its accuracy with other averages in place of attention."""
    model = minivit.load(name)
    test, train = inputs.pictures("CIFAR10", 1000), inputs.pictures("CIFAR10", 500, "train")
    images, other = model.preprocess(test.images), model.preprocess(train.images)
    figures = variances(model, images[::4])  # of all classes, which stand in order
    if isinstance(model, ViT):
        figures["in its place"] = in_place(model, other, images, test.labels)
    return figures


ROWS: dict[str, Callable[[], Figures]] = {
    **{kind: partial(of_shapes, kind) for kind in TOGETHER},
    **{name: partial(of_cifar10, name) for name in CIFAR10},
    **{f"{kind}, {n} x": partial(compared, kind, n) for kind in COMPARED for n in TIMES},
}
STUDY = Survey("smoothing", ROWS, SEEDS)
