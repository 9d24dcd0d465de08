"""The families at equal data, budget and search.

The best of equal rates in short trainings goes on to a long one, of as many steps as the ViT's time
allows.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from studies.benchmarks import interleaved
from studies.runner.run import Run
from studies.runner.storage import Store
from studies.runner.study import Rows, Runs, Study
from studies.shared.small_models import RECIPE, rates
from studies.shared.training import outputs
from vitlab.training.run import Run as Training

VIT = Run("vit_32px", {}, RECIPE)
# By name of the checkpoint, the short training, and images a second over the ViT's, as measured by
# interleaved steps on one thread in bfloat16.
FAMILIES = {
    "gap": (VIT, 1.0),
    "mixer": (Run("mixer_32px", {}, RECIPE), 1.12),
    "resnet": (Run("resnet_32px", {"width": 32}, RECIPE), 0.62),
    "attention_only": (replace(VIT, removed=("mlp",)), 1.5),
    "feedforward": (Run("feedforward_32px", {}, RECIPE), 0.75),
    "alternet": (Run("alternet_32px", {}, RECIPE), 0.46),
    "no_residual": (replace(VIT, removed=("residual",)), 1.0),
    "mixer_no_residual": (Run("mixer_32px", {}, RECIPE, removed=("residual",)), 1.12),
    "cls": (Run("vit_32px", {"pool": "class"}, RECIPE), 1.0),
    "no_norm": (replace(VIT, removed=("norm",)), 1.0),
    "no_norm_slow": (replace(VIT, removed=("norm",)), 1.0),
}
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
STEPS = 2500  # of the ViT: seven epochs, about 18 minutes of one thread


def finals(name: str, best: Run) -> list[Run]:
    """The long training of a family, at the best rate."""
    rate = best.recipe.learning_rate
    if name == "no_norm_slow":  # at the next one: what went well for 300 steps need not for 2,500
        rate = RATES[max(RATES.index(rate) - 1, 0)]
    steps = round(STEPS * FAMILIES[name][1])
    recipe = replace(best.recipe, steps=steps, average=0.998, learning_rate=rate)
    return [replace(best, recipe=recipe)]


def measure(finals: Runs, store: Store) -> Rows:
    """Images a second of each family, in seven rounds of the processor's time on one thread."""
    torch.set_num_threads(1)
    named = {name: tasks(runs[0]) for name, runs in finals.items()}
    calls = {(name, kind): call for name, both in named.items() for kind, call in both.items()}
    times = interleaved(calls, 7, time.process_time)
    rows: Rows = {name: {"images_per_second": {}} for name in finals}
    for (name, kind), seconds in times.items():
        speed = median(finals[name][0].recipe.batch_size / t for t in seconds)
        rows[name]["images_per_second"][kind] = {"median": round(speed, 1)}
    return rows


def tasks(run: Run) -> dict[str, Callable[[], Any]]:
    """A forward pass, and a step of training, of a run's model on a batch of images."""
    model, learner, data = run.create().eval(), run.create(), run.load()
    recipe = replace(run.recipe, steps=10_000, learning_rate=1e-6)  # no step of these may diverge
    read = data.train.images[: recipe.batch_size] / 255
    return {
        "forward": lambda: outputs(model, read),
        "training": Training(learner, data, recipe).advance,
    }


ROWS = {name: rates(run, RATES) for name, (run, _) in FAMILIES.items()}
STUDY = Study("families", ROWS, finals, measure)
