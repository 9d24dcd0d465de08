"""A ResNet teaches a ViT: what its decisions are worth beside the labels.

On few digits; and, thought of when these had been seen, on all digits by the ResNet's decisions. On
CIFAR-10 ``cifar10_vit_gap`` by its own recipe but in float32; and whether its tokens lead back to
the image.
"""

from dataclasses import replace
from functools import partial

import minivit
from studies.families import FAMILIES, STEPS
from studies.runner.pool import gather, weights_of
from studies.runner.run import Run
from studies.runner.survey import Figures, Survey, over_seeds
from studies.shared import inputs
from studies.shared.digit_models import fraction_of
from studies.shared.training import fitted
from studies.unwinding import led_back
from vitlab.data import Split, load_data
from vitlab.training import Recipe, evaluate, logits_of

SEEDS = range(5)
FEW = 0.05  # of the digits have labels: 63
RESNET = partial(minivit.create, "resnet_8px", image_size=16, width=16)
VIT = partial(minivit.create, "vit_8px", image_size=16, patch_size=4, dim=32, depth=4, heads=4)
SHORT = Recipe(steps=150, batch_size=64, learning_rate=1e-2, average=0.95, shift=0.125)
LONG = replace(SHORT, steps=500, learning_rate=5e-3, average=0.98)
IMAGES = 20  # led back


def of_digits() -> Figures:
    """Accuracies of the ResNet and the ViTs, and how often the ResNet differs from the labels."""
    whole = load_data("DIGITS", size=16)
    rows = []
    for seed in SEEDS:
        few = fraction_of(whole, FEW, seed)
        teacher, accuracy = fitted(RESNET, few, SHORT, seed)
        decided = logits_of(teacher, whole.train).argmax(1)
        unlabelled = replace(whole, train=Split(whole.train.images, decided))
        rows.append({
            "teacher": accuracy,
            "differs": 1 - evaluate(teacher, few.train).accuracy,
            "alone": fitted(VIT, few, LONG, seed)[1],
            "taught": fitted(VIT, few, LONG, seed, teacher=teacher)[1],
            "unlabelled": fitted(VIT, unlabelled, LONG, seed)[1],
        })  # fmt: skip
    return over_seeds(rows)


def of_cifar10() -> Figures:
    """The run of the taught model, and how it is led back."""
    recipe = replace(FAMILIES["gap"][0].recipe, steps=STEPS, average=0.998, precision="float32")
    run = Run("vit_32px", {}, recipe, teacher="cifar10_resnet")
    gather([run])
    model = minivit.load(weights_of(run))
    images = model.preprocess(inputs.pictures("CIFAR10", IMAGES).images)
    return {"run": run.key, "back": led_back(model, images)}


STUDY = Survey("distillation", {"digits 63": of_digits, "cifar10": of_cifar10}, SEEDS)
