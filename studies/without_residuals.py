"""Can a deep ViT learn CIFAR-10 without residual connections, if it trains for longer?

The ViTs of sixteen blocks of the study ``residual``, in float32, at the best of bracketed rates;
``3 x``: three times as many steps at that rate.
"""

from dataclasses import replace
from functools import partial

from studies.runner.run import train_one
from studies.runner.survey import Figures, Survey
from studies.shared.lengths import after, named
from studies.small_trainings import residual

SEEDS = range(3)
STEPS, TIMES = 350, (1, 3)
RUNS = {"with": "vit_16", "without": "vit_16_no_residual"}
FIRST = {"with": 3e-3, "without": 3e-4}  # of the rates that are tried


def deep(kind: str, times: int) -> Figures:
    """Scores after ``times`` as many steps."""
    steps = times * STEPS
    how = SEEDS, "without_residuals", kind, TIMES, FIRST[kind]
    return after(times, partial(trained, kind, steps), *how) | {"steps": steps}


def trained(kind: str, steps: int, rate: float, seed: int) -> Figures:
    """Scores of a trained model."""
    run = residual.rows[RUNS[kind]][0]
    recipe = replace(run.recipe, steps=steps, learning_rate=rate, seed=seed, precision="float32")
    result = train_one(replace(run, recipe=recipe), keep=False)
    if result["diverged"]:
        raise FloatingPointError(result["diverged"])
    scores = result["scores"]
    return {
        "accuracy": scores["test"]["accuracy"],
        "validation": scores["validation"]["accuracy"],
        "likelihood": scores["validation"]["log_likelihood"],
        "train_loss": -scores["train"]["log_likelihood"],
    }


ROWS = {named(kind, n): partial(deep, kind, n) for kind in RUNS for n in TIMES}
STUDY = Survey("without_residuals", ROWS, SEEDS, digits=".4g")  # the best rate is 3e-5
