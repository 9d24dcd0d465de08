"""The families at equal data, budget and search.

Every family tries the same learning rates in short trainings; the best on the validation part goes
on to a long one. Its number of steps gives each family the time of the ViT's.

The stored ``attention_only`` was created without its MLPs, and so began with other weights than a
ViT from which they are removed.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from minivit.patches import pair
from studies.runner.run import Run
from studies.runner.storage import Store
from studies.runner.study import Rows, Runs, Study
from studies.shared.small_models import RECIPE, rates
from studies.shared.timing import interleaved
from studies.shared.training import outputs
from vitlab.data import Data, Split
from vitlab.training.run import Run as Training

# By name of the checkpoint, the short training, and images a second over the ViT's, as measured by
# interleaved steps on one thread in bfloat16.
FAMILIES = {
    "gap": (Run("vit_32px", {}, RECIPE), 1.0),
    "mixer": (Run("mixer_32px", {}, RECIPE), 1.12),
    "resnet": (Run("resnet_32px", {"width": 32}, RECIPE), 0.62),
    "attention_only": (Run("vit_32px", {}, RECIPE, removed=("mlp",)), 1.5),
    "feedforward": (Run("feedforward_32px", {}, RECIPE), 0.75),
    "alternet": (Run("alternet_32px", {}, RECIPE), 0.46),
    "no_residual": (Run("vit_32px", {}, RECIPE, removed=("residual",)), 1.0),
    "mixer_no_residual": (Run("mixer_32px", {}, RECIPE, removed=("residual",)), 1.12),
    "cls": (Run("vit_32px", {"pool": "class"}, RECIPE), 1.0),
    "no_norm": (Run("vit_32px", {}, RECIPE, removed=("norm",)), 1.0),
    "no_norm_slow": (Run("vit_32px", {}, RECIPE, removed=("norm",)), 1.0),
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
    """Images a second of each family, forward and in training, on one thread.

    Median, least and largest of seven rounds. A forward pass is in float32, as in scoring; a
    training step has the recipe's precision. Time is that of the processor, so other load on the
    machine matters little.
    """
    torch.set_num_threads(1)
    tasks = {name: {"forward": forward(runs[0]), "training": step(runs[0])}
             for name, runs in finals.items()}  # fmt: skip
    calls = {(name, kind): call for name, pair in tasks.items() for kind, call in pair.items()}
    times = interleaved(calls, 7, time.process_time)
    rows: Rows = {name: {"images_per_second": {}} for name in finals}
    for (name, kind), seconds in times.items():
        speeds = [finals[name][0].recipe.batch_size / t for t in seconds]
        figures = {"median": median(speeds), "low": min(speeds), "high": max(speeds)}
        rows[name]["images_per_second"][kind] = {k: round(v, 1) for k, v in figures.items()}
    return rows


def noise(run: Run) -> Split:
    config, batch = run.create().config, run.recipe.batch_size
    images = torch.randint(0, 256, (batch, config.channels, *pair(config.image_size)))
    return Split(images.to(torch.uint8), torch.arange(batch) % config.classes)


def forward(run: Run) -> Callable[[], Any]:
    model, images = run.create().eval(), noise(run).images / 255
    return lambda: outputs(model, images)


def step(run: Run) -> Callable[[], Any]:
    model, part = run.create(), noise(run)
    classes = tuple(map(str, range(model.config.classes)))
    data = Data.of("noise", classes, {"train": part, "validation": part, "test": part})
    recipe = replace(run.recipe, steps=10_000, learning_rate=1e-6)  # no step of these may diverge
    return Training(model, data, recipe).advance


STUDY = Study(
    "families", {name: rates(run, RATES) for name, (run, _) in FAMILIES.items()}, finals, measure
)
