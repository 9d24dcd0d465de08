"""Speed, measured so that a slow minute of the machine hits all alike; no test asserts a time."""

import random
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import numpy as np

Name = TypeVar("Name", bound=Hashable)


def middle(ratios: np.ndarray) -> str:
    """The median of ratios, and the 95 % bootstrap interval of it."""
    draws = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return f"{np.median(ratios):.2f} ({low:.2f} to {high:.2f})"


def interleaved(
    calls: Mapping[Name, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, list[float]]:
    """Seconds of each call, once a round, in a new random order each round, after a warm-up."""
    for call in calls.values():
        call()
    times: dict[Name, list[float]] = {name: [] for name in calls}
    shuffle = random.Random(0)
    for _ in range(rounds):
        for name in shuffle.sample(list(calls), len(calls)):
            start = clock()
            calls[name]()
            times[name].append(clock() - start)
    return times
