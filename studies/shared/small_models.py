"""The small models that several studies share, their recipe, and the search for their rates.

A study changes one thing of the run that the search finds; what stands in two is trained once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from studies.runner.run import Run
from vitlab.training import Recipe

WEAK = Recipe(steps=300, shift=0.125, flip=True, average=0.99, precision="bfloat16")
RECIPE = replace(WEAK, operations=1, magnitude=0.3)
SHORT = replace(RECIPE, steps=500)  # 1.4 passes over CIFAR-10, two minutes of one thread
NOTHING: dict[str, Any] = {"shift": 0.0, "flip": False, "operations": 0, "label_smoothing": 0.0}
WHOLE = 45_000  # training images of CIFAR-10
MODELS = {
    "vit": Run("vit_32px", {"dim": 64}, SHORT),
    "mixer": Run("mixer_32px", {"dim": 64, "mixing_hidden": 32}, SHORT),
    "resnet": Run("resnet_32px", {}, SHORT),
}
RATES = (1e-3, 3e-3)


def search(family: str) -> list[Run]:
    """Trainings on all of CIFAR-10, one a rate."""
    return rates(MODELS[family], RATES)


def rates(run: Run, learning_rates: Sequence[float]) -> list[Run]:
    return [replace(run, recipe=replace(run.recipe, learning_rate=r)) for r in learning_rates]


def variants(best: Run, seeds: Sequence[int], pictures: int = WHOLE, **recipe: Any) -> list[Run]:
    """The run that a search found, on fewer images and with some of its recipe changed."""
    return [
        replace(best, fraction=pictures / WHOLE, recipe=replace(best.recipe, seed=seed, **recipe))
        for seed in seeds
    ]
