"""Can a deep ViT learn CIFAR-10 without residual connections, if it trains for longer?

The ViTs of sixteen blocks of the study ``residual``, in float32, each at the best of bracketed
rates; ``3 x``: three times as many steps.
"""

from dataclasses import replace
from functools import partial

from studies.runner.run import train_one
from studies.runner.survey import Figures, Survey
from studies.shared.lengths import TIMES, at_best_rate, named
from studies.small_trainings import residual

SEEDS = range(3)
STEPS = 350
RUNS = {"with": "vit_16", "without": "vit_16_no_residual"}
FIRST = {"with": 3e-3, "without": 3e-4}  # of the rates that are tried


def deep(kind: str, times: int) -> Figures:
    """Scores after ``times`` as many steps."""
    training = partial(trained, kind, times * STEPS)
    figures = at_best_rate(training, SEEDS, FIRST[kind], f"without_residuals {kind}, {times} x")
    return figures | {"steps": times * STEPS}


def trained(kind: str, steps: int, rate: float, seed: int) -> Figures:
    """Scores of a trained model."""
    run = residual.rows[RUNS[kind]][0]
    how = {"steps": steps, "learning_rate": rate, "seed": seed, "precision": "float32"}
    result = train_one(replace(run, recipe=replace(run.recipe, **how)), keep=False)
    if result["diverged"]:
        raise FloatingPointError(result["diverged"])
    scores = result["scores"]
    return {
        "accuracy": scores["test"]["accuracy"],
        "validation": scores["validation"]["accuracy"],
        "likelihood": scores["validation"]["log_likelihood"],
        "train_loss": -scores["train"]["log_likelihood"],
    }


ROWS = {named(kind, n): partial(deep, kind, n) for kind in RUNS for n in TIMES[:2]}
STUDY = Survey("without_residuals", ROWS, SEEDS)
