"""The families at equal data, budget and search. ``python -m studies.families --help``

Every family tries the same learning rates in short trainings; the best on the validation part goes
on to a long one. Its number of steps gives each family the time of the ViT's.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from minivit.training import Recipe
from studies.command import Rows, Study, main
from studies.pool import Place, Run
from studies.speed import speeds

# Name of the checkpoint -> model, its changes, and pictures a second over the ViT's, as measured by
# interleaved steps on one thread in bfloat16.
FAMILIES: dict[str, tuple[str, dict[str, Any], float]] = {
    "gap": ("vit_32px", {}, 1.0),
    "mixer": ("mixer_32px", {}, 1.12),
    "resnet": ("resnet_32px", {"width": 32}, 0.62),
    "attention_only": ("vit_32px", {"mlp": False}, 1.5),
    "feedforward": ("feedforward_32px", {}, 0.75),
    "alternet": ("alternet_32px", {}, 0.46),
    "no_residual": ("vit_32px", {"residual": False}, 1.0),
    "mixer_no_residual": ("mixer_32px", {"residual": False}, 1.12),
    "cls": ("vit_32px", {"pool": "class"}, 1.0),
    "no_norm": ("vit_32px", {"norm": "none"}, 1.0),
    "no_norm_slow": ("vit_32px", {"norm": "none"}, 1.0),
}
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
RECIPE = Recipe(
    steps=300, shift=0.125, flip=True, operations=1, magnitude=0.3, average=0.99,
    precision="bfloat16",
)  # fmt: skip
STEPS = 2500  # of the ViT: seven epochs, about 18 minutes of one thread


def searched(name: str) -> list[Run]:
    """The short trainings of a family, one a rate."""
    model, changes, _ = FAMILIES[name]
    return [Run(model, changes, replace(RECIPE, learning_rate=rate)) for rate in RATES]


def long(name: str, rate: float, seed: int = 0) -> Run:
    """The long training of a family."""
    model, changes, speed = FAMILIES[name]
    steps, average = round(STEPS * speed), 0.998
    recipe = replace(RECIPE, steps=steps, average=average, learning_rate=rate, seed=seed)
    return Run(model, changes, recipe)


def finals(name: str, best: Run) -> list[Run]:
    """The long training of a family, at the best rate."""
    rate = best.recipe.learning_rate
    if name == "no_norm_slow":  # at the next one: what went well for 300 steps need not for 2,500
        rate = RATES[max(RATES.index(rate) - 1, 0)]
    return [long(name, rate)]


def measure(finals: Mapping[str, Sequence[Run]], place: Place) -> Rows:
    """Pictures a second of each family."""
    found = speeds({name: runs[0] for name, runs in finals.items()})
    return {name: {"images_per_second": speed} for name, speed in found.items()}


STUDY = Study("families", {name: searched(name) for name in FAMILIES}, finals, measure)

if __name__ == "__main__":
    sys.exit(main(STUDY))
