"""The small models that several studies share, their recipe, and the search for their rates.

A study takes the run that the search finds and changes one thing of it: so its rows have their
rate from the same search, and a run that stands in two studies is trained once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from studies.families import RECIPE
from studies.one import Run

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit_32px", {"dim": 64}),
    "mixer": ("mixer_32px", {"dim": 64, "mixing_hidden": 32}),
    "resnet": ("resnet_32px", {}),
}
RATES = (1e-3, 3e-3)
SHORT = replace(RECIPE, steps=500)  # 1.4 passes over CIFAR-10, two minutes of one thread
NOTHING: dict[str, Any] = {"shift": 0.0, "flip": False, "operations": 0, "label_smoothing": 0.0}
WHOLE = 45_000  # training pictures of CIFAR-10


def search(family: str) -> list[Run]:
    """Trainings on all of CIFAR-10, one a rate."""
    model, changes = MODELS[family]
    return [Run(model, changes, replace(SHORT, learning_rate=rate)) for rate in RATES]


def variants(best: Run, seeds: Sequence[int], pictures: int = WHOLE, **recipe: Any) -> list[Run]:
    """The run that a search found, on fewer pictures and with some of its recipe changed."""
    fraction = pictures / WHOLE
    return [
        replace(best, fraction=fraction, recipe=replace(best.recipe, seed=seed, **recipe))
        for seed in seeds
    ]
