"""A ResNet teaches a ViT: what its decisions are worth beside the labels.

On few digits, five seeds: a ResNet; a ViT of the same images; from the same first weights a ViT
with the ResNet as its teacher; and one of all digits by the ResNet's decisions, without a label.
(The last was thought of when the others had been seen.) On CIFAR-10, one training:
``cifar10_vit_gap``, whose patch embedding is a linear map, by its own recipe but in float32, with
``cifar10_resnet`` as its teacher; and whether its tokens lead back to the image.
"""

from dataclasses import replace
from typing import Any

import torch

import minivit
from minivit.model import Model
from minivit.vit import ViT
from studies.families import FAMILIES, STEPS
from studies.runner.pool import gather, trained
from studies.runner.run import Run
from studies.runner.survey import Figures, Survey
from studies.shared import inputs
from studies.shared.digit_models import fraction_of, plain
from studies.unwinding import led_back
from vitlab.data import Data, Split, load_data
from vitlab.training import Recipe, evaluate, logits_of, train

SEEDS = range(5)
FEW = 0.05  # of the digits have labels: 63
RESNET = ("resnet_8px", {"image_size": 16, "width": 16})
VIT = ("vit_8px", {"image_size": 16, "patch_size": 4, "dim": 32, "depth": 4, "heads": 4})
SHORT = Recipe(steps=150, batch_size=64, learning_rate=1e-2, average=0.95, shift=0.125)
LONG = replace(SHORT, steps=500, learning_rate=5e-3, average=0.98)
IMAGES = 20  # led back


def measure(name: str, rehearsal: bool) -> Figures:
    """The figures of one row."""
    if name == "cifar10":
        return of_cifar10(rehearsal)
    whole = load_data("DIGITS", size=16)
    found: Figures = {"teacher": [], "differs": [], "alone": [], "taught": [], "unlabelled": []}
    for seed in SEEDS[:1] if rehearsal else SEEDS:
        few = fraction_of(whole, FEW, seed)
        teacher, right = fitted(RESNET, few, SHORT, seed, rehearsal)
        found["teacher"].append(right)
        found["differs"].append(1 - evaluate(teacher, few.train).accuracy)
        images = whole.train.images
        decided = logits_of(teacher, whole.train).argmax(1)
        for kind, data, by in (
            ("alone", few, None),
            ("taught", few, teacher),
            ("unlabelled", replace(whole, train=Split(images, decided)), None),
        ):
            found[kind].append(fitted(VIT, data, LONG, seed, rehearsal, by)[1])
    return plain(found)


def fitted(
    kind: tuple[str, dict[str, Any]],
    data: Data,
    recipe: Recipe,
    seed: int,
    rehearsal: bool,
    teacher: Model | None = None,
) -> tuple[Model, float]:
    """A model trained from the seed's first weights, and its accuracy on the test part."""
    torch.manual_seed(seed)
    model = minivit.create(kind[0], **kind[1])
    recipe = replace(recipe, steps=2 if rehearsal else recipe.steps, seed=seed)
    return model, train(model, data, recipe, teacher=teacher).test.accuracy


def of_cifar10(rehearsal: bool) -> Figures:
    """Scores of the taught model, how its accuracy grew, what it cost, how it is led back."""
    if rehearsal:
        return {"back": back(inputs.model("cifar10_vit_gap"), 1)}
    recipe = replace(FAMILIES["gap"][0].recipe, steps=STEPS, average=0.998, precision="float32")
    run = Run("vit_32px", {}, recipe, teacher="cifar10_resnet")
    (found,) = gather([run])
    return {
        "run": run.key,
        "accuracy": found["scores"]["test"]["accuracy"],
        "validation": [line["validation"]["accuracy"] for line in found["curve"]],
        "training_seconds": found["seconds"],
        "back": back(minivit.load(trained(run)), IMAGES),
    }


def back(model: Model, count: int) -> Figures:
    """How near to some images its tokens lead."""
    assert isinstance(model, ViT)
    return led_back(model, model.preprocess(inputs.pictures("CIFAR10", count).images))


STUDY = Survey("distillation", ["digits 63", "cifar10"], measure, seeds=SEEDS)
