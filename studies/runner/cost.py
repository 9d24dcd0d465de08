"""How long a training takes: images a second of its model, measured, and minutes, estimated."""

import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from minivit.patches import pair
from studies.runner.run import TRAINED_ON, WATCHED, Run
from vitlab.data import Data, Split
from vitlab.training.run import Run as Training

# Images to train on, to validate and to test.
PICTURES = {
    "CIFAR10": (45_000, 5_000, 10_000),
    "DIGITS": (1_259, 179, 359),
    "SHAPES": (8_000, 1_000, 2_000),
}


def minutes(runs: Sequence[Run]) -> dict[str, float]:
    """Minutes of one thread for each run, by its key; a few steps of each model are timed."""
    kinds = {_kind(run): run for run in runs}
    speed = speeds(kinds, rounds=3)
    found = {}
    for run in runs:
        one = speed[_kind(run)]
        trained, scored = _pictures(run)
        times = trained / one["training"]["median"], scored / one["forward"]["median"]
        found[run.key] = sum(times) / 60
    return found


def _kind(run: Run) -> str:
    """What runs of the same speed have in common."""
    return json.dumps([run.model, run.changes, run.removed, run.recipe.precision], sort_keys=True)


def _pictures(run: Run) -> tuple[int, int]:
    """How many images a run trains on, repeats included, and how many it scores."""
    whole, validation, test = PICTURES[run.data]
    train = max(1, round(run.fraction * whole))
    batch = min(run.recipe.batch_size, train)
    steps = run.recipe.steps or max(1, round(run.recipe.epochs * (train // batch)))
    epochs = math.ceil(steps / (train // batch))
    watched = validation if run.fraction == 1 else min(WATCHED, validation)
    return steps * batch, epochs * watched + validation + test + min(TRAINED_ON, train)


def speeds(runs: Mapping[str, Run], rounds: int = 7) -> dict[str, dict[str, dict[str, float]]]:
    """Images a second, forward and in training, on one thread.

    Each model is timed once a round, in a new order each round, with the batches of its recipe. A
    forward pass is in float32, as in scoring; a training step has the recipe's precision. Time is
    that of the processor, so other load on the machine matters little.

    Returns:
        For each name, under ``"forward"`` and ``"training"``, ``median`` over the rounds, ``low``
        and ``high``.
    """
    torch.set_num_threads(1)
    calls = {
        (name, kind): call
        for name, run in runs.items()
        for kind, call in zip(("forward", "training"), _calls(run), strict=True)
    }
    times: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    for call in calls.values():
        call()  # warm up
    shuffle = random.Random(0)
    for _ in range(rounds):
        for key in shuffle.sample(list(calls), len(calls)):
            start = time.process_time()
            calls[key]()
            times[key].append(runs[key[0]].recipe.batch_size / (time.process_time() - start))
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in runs}
    for (name, kind), values in times.items():
        figures = {"median": median(values), "low": min(values), "high": max(values)}
        found[name][kind] = {key: round(value, 1) for key, value in figures.items()}
    return found


def _calls(run: Run) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A forward pass, and a training step, on random images."""
    model = run.create()
    batch = run.recipe.batch_size
    channels, classes = model.config.channels, model.config.classes
    shape = (batch, channels, *pair(model.config.image_size))
    images = torch.randint(0, 256, shape, dtype=torch.uint8)
    part = Split(images, torch.arange(batch) % classes)
    parts = {"train": part, "validation": part, "test": part}
    data = Data.of("noise", tuple(map(str, range(classes))), parts)
    recipe = replace(run.recipe, steps=10_000, learning_rate=1e-6)  # no step of these may diverge
    training = Training(run.create(), data, recipe)
    model.eval()
    x = images.float() / 255

    def forward() -> None:
        with torch.inference_mode():
            model(x)

    return forward, training.advance
