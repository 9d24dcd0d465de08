"""Trainings of several lengths, each at the best of bracketed rates, for claims that compare.

A word must not change with when training stops, nor at the next rate, nor where both of two models
have the same training loss: :func:`at_best_rate` gives what these readings take.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

import torch

from minivit.model import Model
from studies.runner.storage import HERE, Figures, write
from studies.runner.survey import over_seeds
from vitlab.data import Data
from vitlab.training import Recipe, evaluate, train

TIMES = 1, 3, 10  # as many steps
RATES = 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1
FIRST = 1e-2  # is tried first
SEARCHED = range(3)  # seeds that choose a rate
POINTS = 40  # of a curve, at most

Training = Callable[[float, int], Figures]  # by rate and seed


def at_best_rate(training: Training, seeds: Sequence[int], first: float, name: str) -> Figures:
    """What a training gives at its best rate, a list over seeds each; the same at the next rate.

    The best mean ``validation`` over three seeds wins, at equal ones the best mean ``likelihood``.
    Rates are added until the best one has a worse one on either side, or there are no more; the
    better of these two is the ``next``. A training that diverges is worse than any. What is done
    is kept under ``name``, for when this is interrupted.
    """
    tried: dict[float, list[Figures]] = {}

    def score(i: int) -> tuple[float, float]:
        rate = RATES[i]
        if rate not in tried:
            tried[rate] = [kept(training, rate, seed, name) for seed in SEARCHED]
        if not all(tried[rate]):
            return -1.0, 0.0
        held_out, likely = (
            fmean(one[k] for one in tried[rate]) for k in ("validation", "likelihood")
        )
        return held_out, likely

    def beside(i: int) -> list[int]:
        return [j for j in (i - 1, i + 1) if 0 <= j < len(RATES)]

    best = RATES.index(first)
    while (better := max((best, *beside(best)), key=score)) != best:
        best = better
    other = max(beside(best), key=score)
    at = {rate: at_rate(training, seeds, rate, name) for rate in (RATES[best], RATES[other])}
    return at[RATES[best]] | {
        "rates": {f"{RATES[i]:g}": score(i)[0] for i in range(len(RATES)) if RATES[i] in tried},
        "next": at[RATES[other]],
    }


def named(row: str, times: int) -> str:
    """The name of a row of a study after ``times`` as many steps."""
    return row + (f", {times} x" if times > 1 else "")


def after(
    times: int,
    training: Training,
    seeds: Sequence[int],
    study: str,
    row: str,
    of: Sequence[int] = TIMES,
    first: float = FIRST,
) -> Figures:
    """What a training of this length gives: at its best rate and at the next, or, the longest, at
    the rate that was best for the length before."""
    name = f"{study} {row}, {times} x"
    if times < of[-1]:
        return at_best_rate(training, seeds, first, name)
    before = json.loads(HERE.table(study).read_text())["rows"][named(row, of[-2])]
    return at_rate(training, seeds, before["rate"], name)


def at_rate(training: Training, seeds: Sequence[int], rate: float, name: str) -> Figures:
    """What a training gives at a rate, a list over seeds each, without those that diverge."""
    done = [kept(training, rate, seed, name) for seed in seeds]
    return over_seeds(filter(None, done)) | {"rate": rate}


def kept(training: Training, rate: float, seed: int, name: str) -> Figures:
    """The figures of a training, or of the one that was kept; none, if it diverged."""
    path = HERE.root / "studies/runs/lengths" / f"{name}, {rate:g}, {seed}.json"
    if path.exists():
        return json.loads(path.read_text())
    try:
        figures = training(rate, seed)
    except FloatingPointError:
        figures = {}
    write(figures, path)
    return figures


def scored(
    create: Callable[[], Model], data: Data, recipe: Recipe, rate: float, seed: int
) -> Figures:
    """Scores of a trained model; ``curve`` has its steps, loss in training and test accuracy."""
    torch.manual_seed(seed)
    model, watched = create(), replace(data, validation=data.test)
    results = train(model, watched, replace(recipe, learning_rate=rate, seed=seed))
    held_out = evaluate(model, data.validation)
    return {
        "accuracy": results.test.accuracy,
        "validation": held_out.accuracy,
        "likelihood": held_out.log_likelihood,
        "train_loss": -evaluate(model, data.train).log_likelihood,
        "curve": curve(results.lines),
    }


def curve(lines: Sequence[Figures]) -> list[list[float]]:
    """Of epochs, the steps, the mean loss in training and the accuracy on what is watched."""
    few = list(lines[:: -(-len(lines) // POINTS)])
    if few[-1] is not lines[-1]:
        few.append(lines[-1])
    return [[one["step"], one["loss"], one["validation"]["accuracy"]] for one in few]
