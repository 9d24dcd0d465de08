"""Take it away, put it in: what models lose with a part, by what is put in its place.

Deep ResNets of shapes, in three stages or in one, lose each block in turn; ViTs of digits and
shipped models each branch, by zero, by mean and by resampling. ViTs of images of which one quarter
decides show which maps of relevance find it. ``3 x`` and ``10 x``: as many steps.
"""

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import minivit
from minivit.model import Model
from studies.runner.survey import Figures, Survey, plain
from studies.shared import inputs
from studies.shared.lengths import TIMES, after, named
from studies.shared.planted import planted, two_digits
from studies.shared.shape_models import SIZES, shapes
from studies.shared.training import accuracy, fit, fitted, outputs
from vitlab.data import Split, load_data
from vitlab.instruments import branch_importance, cka
from vitlab.instruments.importance import By
from vitlab.training import Recipe

SEEDS = range(5)
MORE = range(10)  # of ResNets in three stages, of which five left a verdict open
STAGES = {"three stages": (5, 5, 5), "one stage": (15,)}
STEPS = 200
WAYS: tuple[By, ...] = ("zero", "mean", "resample")
SHIPPED = ("cifar10_vit_gap", "cifar10_resnet")
BRANCH = "norm2"  # of a ResNet's block, the last module before the addition


def resnets(kind: str, times: int) -> Figures:
    """What ResNets are and lose, after ``times`` as many steps."""
    training, seeds = partial(resnet, kind, times), MORE if kind == "three stages" else SEEDS
    return after(times, training, seeds, "lesions", kind) | {"steps": times * STEPS}


def resnet(kind: str, times: int, rate: float, seed: int) -> Figures:
    """A ResNet's scores, accuracy without each block, and CKA of its blocks; in three stages also
    with blocks by their mean, and without their second convolution."""
    (images, targets, _), (test, truth, _) = shapes("train"), shapes("test")
    torch.manual_seed(seed)
    model = minivit.create("resnet_32px", **SIZES, width=8, stages=STAGES[kind])
    fit(model, images, targets, steps=times * STEPS, seed=seed, rate=rate)
    blocks, (held_out, answers, _) = range(sum(STAGES[kind])), shapes("validation")
    lose = partial(branch_importance, model, test, truth, *(f"blocks.{i}.{BRANCH}" for i in blocks))
    figures = {
        "whole": accuracy(model, test, truth),
        "zero": lose().accuracy,
        "cka": cka(model, test[:500], *(f"blocks.{i}" for i in blocks)).values,
        "validation": accuracy(model, held_out, answers),
        "likelihood": -F.cross_entropy(outputs(model, held_out), answers),
        "train_loss": F.cross_entropy(outputs(model, images), targets),
    }
    if kind == "three stages":
        figures["mean"] = lose(by="mean", reference=images[:500]).accuracy
        lesser = (without_second_convolution(model, i) for i in blocks)
        figures["one convolution"] = [accuracy(other, test, truth) for other in lesser]
    return plain(figures)


def without_second_convolution(model: Model, block: int) -> nn.Module:
    """A copy of which one block has lost its second convolution and norm, and nothing else."""
    model = copy.deepcopy(model)
    lesser: Any = model.get_submodule(f"blocks.{block}")
    lesser.conv2 = lesser.norm2 = nn.Identity()
    return model


def digits(seed: int) -> Figures:
    """A ViT's accuracy without each branch."""
    data, recipe = load_data("DIGITS"), Recipe(batch_size=64, learning_rate=3e-3, average=0.95)
    model, _ = fitted(partial(minivit.create, "vit_8px"), data, replace(recipe, steps=STEPS), seed)
    return by_ways(model, data.test, data.train)


def by_ways(model: Model, test: Split, train: Split, *names: str) -> Figures:
    images, reference = model.preprocess(test.images), model.preprocess(train.images)
    figures: Figures = {"whole": accuracy(model, images, test.labels)}
    for by in WAYS:
        how: dict[str, Any] = {"by": by, "reference": reference}
        figures[by] = branch_importance(model, images, test.labels, *names, **how).accuracy
    return figures


def shipped(name: str) -> Figures:
    test, train = (inputs.pictures("CIFAR10", 500, part) for part in ("test", "train"))
    names = [f"blocks.?.{BRANCH}"] if name == "cifar10_resnet" else []
    return by_ways(minivit.load(name), test, train, *names)


OTHERS = {"digits": digits, "planted": planted, "two digits": two_digits}
ROWS = {named(kind, n): partial(resnets, kind, n) for kind in STAGES for n in TIMES}
ROWS |= {f"{kind}: {seed}": partial(f, seed) for kind, f in OTHERS.items() for seed in SEEDS}
ROWS |= {name: partial(shipped, name) for name in SHIPPED}
STUDY = Survey("lesions", ROWS, SEEDS)
