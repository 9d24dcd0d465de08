"""About how long a training takes, measured before it begins."""

import json
import math
from collections.abc import Sequence

from studies.one import TRAINED_ON, WATCHED, Run
from studies.speed import speeds

# Pictures to train on, to validate and to test.
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
    return json.dumps([run.model, run.changes, run.recipe.precision], sort_keys=True)


def _pictures(run: Run) -> tuple[int, int]:
    """How many pictures a run trains on, each as often as it comes, and how many it scores."""
    whole, validation, test = PICTURES[run.data]
    train = max(1, round(run.fraction * whole))
    batch = min(run.recipe.batch_size, train)
    steps = run.recipe.steps or max(1, round(run.recipe.epochs * (train // batch)))
    epochs = math.ceil(steps / (train // batch))
    watched = validation if run.fraction == 1 else min(WATCHED, validation)
    return steps * batch, epochs * watched + validation + test + min(TRAINED_ON, train)
