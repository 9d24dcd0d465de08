"""The waves in what a model's parts read and give, and in the stream that they add to."""

from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import find, runnable, tensors_in
from vitlab.instruments.frequency import LogAmplitude, log_amplitude
from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import Places, named
from vitlab.instruments.residuals import residuals
from vitlab.instruments.running import Images, batches, evaluating, expect


@dataclass(frozen=True, eq=False)
class Passage:
    """The waves in what a module reads, and in what it gives."""

    before: LogAmplitude
    after: LogAmplitude


@dataclass(frozen=True, eq=False)
class Addition:
    """The waves in both terms of a residual connection, and in their sum."""

    skip: LogAmplitude
    branch: LogAmplitude
    sum: LogAmplitude


def layer_frequencies(
    model: nn.Module, images: Images, *names: str, grid: Grid | None = None, batch_size: int = 16
) -> dict[str, Passage]:
    """The log amplitudes of what named modules read and give, by name, in the order they run.

    Of tokens ``[batch, tokens, dim]`` those of patches count; of several tensors the first.
    """
    named(model, names)
    modules, weights = find(runnable(model), names)
    expect(not weights, "names of modules", list(names))
    first, stream = batches(images, batch_size)
    waves = _Waves(Places(model, first, grid))

    def keep(name: str, place: str, module: nn.Module, *call: Any) -> None:
        waves.add(name, **{place: tensors_in(call if place == "before" else call[1])[0]})

    with ExitStack() as stack:
        for name, module in modules.items():
            stack.enter_context(before(module, partial(keep, name, "before")))
            stack.enter_context(after(module, partial(keep, name, "after")))
        stack.enter_context(evaluating(model))
        for batch in stream:
            model(batch)
    missing = sorted(modules.keys() - waves.means.keys())
    expect(not missing, "modules that the model runs", missing)
    return {name: Passage(**means) for name, means in waves.result().items()}


def stream_frequencies(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> dict[str, Addition]:
    """The log amplitudes of skip, branch and sum before the pooling, by the name of the branch."""
    first, stream = batches(images, batch_size)
    waves = _Waves(Places(model, first, grid))

    def keep(name: str, branch: Tensor, skip: Tensor) -> None:
        if skip.ndim > 2:  # and not pooled
            waves.add(name, skip=skip, branch=branch, sum=skip + branch)

    with evaluating(model), residuals(model, keep):
        for batch in stream:
            model(batch)
    if not waves.means:
        raise ValueError(f"no residual connection is seen in {type(model).__name__}")
    return {name: Addition(**means) for name, means in waves.result().items()}


class _Waves:
    """Mean log amplitudes, by name and place, of a model's tokens on their grid and of its maps."""

    def __init__(self, places: Places) -> None:
        self.places = places
        # Sums over images, and how many images there are.
        self.means: dict[str, dict[str, tuple[Tensor, int]]] = defaultdict(dict)

    def add(self, name: str, **tensors: Tensor) -> None:
        for place, x in tensors.items():
            total, count = self.means[name].get(place, (0, 0))
            values = log_amplitude(self.places.split(x)[1].movedim(-1, 1)).values.cpu()
            self.means[name][place] = total + values * len(x), count + len(x)

    def result(self) -> dict[str, dict[str, LogAmplitude]]:
        return {
            name: {place: LogAmplitude(total / count) for place, (total, count) in sums.items()}
            for name, sums in self.means.items()
        }
