"""Take it away, put it in: what models lose with a part, by what is put in its place.

ResNets of 15 blocks, in three stages or in one, are trained on generated images of shapes, five
seeds each, and lose each block in turn. Small ViTs of digits, and models of CIFAR-10 that come with
the package, lose each branch by zero, by mean and by resampling. ViTs of images of which one
quarter decides show which maps of relevance find it.
"""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import minivit
from minivit.model import Model
from studies.runner.survey import Figures, Survey
from studies.shared import inputs
from studies.shared.digit_models import plain
from studies.shared.planted import planted, two_digits
from studies.shared.shape_models import SIZES, fit, in_parts, shapes
from vitlab.data import load_data
from vitlab.instruments import branch_importance, cka
from vitlab.instruments.ablation import By
from vitlab.training import Recipe, train

SEEDS = range(5)
STAGES = {"three stages": (5, 5, 5), "one stage": (15,)}
STEPS = {"resnet": 200, "digits": 200}
WAYS: tuple[By, ...] = ("zero", "mean", "resample")
SHIPPED = ("cifar10_vit_gap", "cifar10_resnet")
BRANCH = "norm2"  # of a ResNet's block, the last module before the addition


def measure(row: str, rehearsal: bool) -> Figures:
    """The figures of one row."""
    if row in SHIPPED:
        return plain(shipped(row, rehearsal))
    kind, _, seed = row.partition(": ")
    if kind in STAGES:
        return plain(resnet(kind, int(seed), rehearsal))
    measured = {"digits": digits, "planted": planted, "two digits": two_digits}[kind]
    return plain(measured(int(seed), rehearsal))


def resnet(kind: str, seed: int, rehearsal: bool) -> Figures:
    """A ResNet's accuracy whole and without each block, and CKA of its blocks.

    That in three stages loses blocks in two more ways: by the mean, and its second convolution.
    """
    (images, targets, _), (test, truth, _) = (shapes(part, rehearsal) for part in ("train", "test"))
    torch.manual_seed(seed)
    stages = tuple(n // 5 for n in STAGES[kind]) if rehearsal else STAGES[kind]
    model = minivit.create("resnet_32px", **SIZES, width=8, stages=stages)
    steps = 2 if rehearsal else STEPS["resnet"]
    fit(model, images, targets, steps=steps, seed=seed, rate=5e-3)
    blocks = range(sum(stages))
    lose = partial(branch_importance, model, test, truth, *(f"blocks.{i}.{BRANCH}" for i in blocks))
    found = {
        "whole": accuracy(model, test, truth),
        "zero": lose().accuracy,
        "cka": cka(model, test[:500], *(f"blocks.{i}" for i in blocks)).values,
    }
    if kind == "three stages":
        found["mean"] = lose(by="mean", reference=images[:500]).accuracy
        lesser = [without_second(model, i) for i in blocks]
        found["one convolution"] = [accuracy(one, test, truth) for one in lesser]
    return found


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Fraction of the images of which a model is right."""
    return (in_parts(model, images).argmax(1) == labels).double().mean().item()


def without_second(model: Model, block: int) -> nn.Module:
    """A copy of which one block has lost its second convolution and norm, and nothing else."""
    model = copy.deepcopy(model)
    lesser: Any = model.get_submodule(f"blocks.{block}")
    lesser.conv2 = lesser.norm2 = nn.Identity()
    return model


def digits(seed: int, rehearsal: bool) -> Figures:
    """A ViT's accuracy without each branch."""
    data = load_data("DIGITS")
    torch.manual_seed(seed)
    model = minivit.create("vit_8px")
    steps = 2 if rehearsal else STEPS["digits"]
    recipe = Recipe(steps=steps, batch_size=64, learning_rate=3e-3, average=0.95, seed=seed)
    train(model, data, recipe)
    test = data.test[torch.arange(20)] if rehearsal else data.test
    images, known = (model.preprocess(part.images) for part in (test, data.train))
    return by_ways(model, images, test.labels, known[:20] if rehearsal else known)


def by_ways(model: Model, images: Tensor, labels: Tensor, known: Tensor, *names: str) -> Figures:
    """Accuracy whole, and without each branch."""
    found: Figures = {"whole": accuracy(model, images, labels)}
    for by in WAYS:
        rows = branch_importance(model, images, labels, *names, by=by, reference=known)
        found[by] = rows.accuracy
    return found


def shipped(name: str, rehearsal: bool) -> Figures:
    """Accuracy of a model of CIFAR-10 without each branch."""
    model = inputs.model(name)
    if rehearsal:
        images, labels = torch.rand(8, 3, 32, 32), torch.arange(8)
        known = images.flip(0)
    else:
        test, train = (inputs.pictures("CIFAR10", 500, part) for part in ("test", "train"))
        images, known, labels = *(model.preprocess(x.images) for x in (test, train)), test.labels
    names = [f"blocks.?.{BRANCH}"] if name == "cifar10_resnet" else []
    return by_ways(model, images, labels, known, *names)


STUDY = Survey(
    "lesions",
    (
        *(f"{kind}: {seed}" for seed in SEEDS for kind in STAGES),
        *(f"digits: {seed}" for seed in SEEDS),
        *(f"{kind}: {seed}" for kind in ("planted", "two digits") for seed in SEEDS),
        *SHIPPED,
    ),
    measure,
    seeds=SEEDS,
)
