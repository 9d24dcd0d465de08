"""Times of several calls, taken so that a slow minute of the machine hits all alike."""

import random
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


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
