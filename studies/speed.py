"""How many pictures a second a run's model takes, forward and in training, on one thread."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from minivit.data import Data, Split
from minivit.networks.patches import pair
from minivit.training.run import Run as Training
from studies.one import Run


def speeds(runs: Mapping[str, Run], rounds: int = 7) -> dict[str, dict[str, dict[str, float]]]:
    """Times the models of some runs in turn, each once a round and in a new order each round.

    A forward pass is in float32, as in scoring; a training step is that of the recipe, in its
    precision; both take its batches. Time is that of the processor, so what else the machine does
    counts little.

    Args:
        runs: By name.
        rounds: Times that each is timed, after one that is not.

    Returns:
        For each name, under ``"forward"`` and ``"training"``, the pictures a second: ``median``
        over the rounds, ``low`` and ``high``.
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
    """A forward pass, and a training step, on random pictures."""
    model, batch = run.create(), run.recipe.batch_size
    channels, classes = model.config.channels, model.config.classes
    shape = (batch, channels, *pair(model.config.image_size))
    images = torch.randint(0, 256, shape, dtype=torch.uint8)
    part = Split(images, torch.arange(batch) % classes)
    parts = {"train": part, "validation": part, "test": part}
    data = Data.of("noise", tuple(map(str, range(classes))), parts)
    recipe = replace(run.recipe, steps=10_000, learning_rate=1e-6)  # no step of these may diverge
    training, forward, x = Training(run.create(), data, recipe), model.eval(), images.float() / 255

    def look() -> None:
        with torch.inference_mode():
            forward(x)

    return look, training.advance
