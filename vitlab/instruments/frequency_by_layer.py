"""The waves in what a model's parts read and give, and in the stream that they add to."""

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import find, runnable, tensors_in
from vitlab.instruments.frequency import LogAmplitude, log_amplitude
from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import Means, Places, named
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
    waves = Means(Places(model, first, grid), _amplitudes)

    def keep(name: str, place: str, module: nn.Module, *call: Any) -> None:
        waves.add(name, **{place: tensors_in(call if place == "before" else call[1])[0]})

    with ExitStack() as stack:
        for name, module in modules.items():
            stack.enter_context(before(module, partial(keep, name, "before")))
            stack.enter_context(after(module, partial(keep, name, "after")))
        stack.enter_context(evaluating(model))
        for batch in stream:
            model(batch)
    missing = sorted(modules.keys() - waves.sums.keys())
    expect(not missing, "modules that the model runs", missing)
    return {name: Passage(**_waves_at(waves.of(name))) for name in waves.sums}


def stream_frequencies(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> dict[str, Addition]:
    """The log amplitudes of skip, branch and sum before the pooling, by the name of the branch."""
    first, stream = batches(images, batch_size)
    waves = Means(Places(model, first, grid), _amplitudes)

    def keep(name: str, branch: Tensor, skip: Tensor) -> None:
        if skip.ndim > 2:  # and not pooled
            waves.add(name, skip=skip, branch=branch, sum=skip + branch)

    with evaluating(model), residuals(model, keep):
        for batch in stream:
            model(batch)
    if not waves.sums:
        raise ValueError(f"no residual connection is seen in {type(model).__name__}")
    return {name: Addition(**_waves_at(waves.of(name))) for name in waves.sums}


def _amplitudes(patches: Tensor) -> Tensor:
    return log_amplitude(patches.movedim(-1, 1)).values * len(patches)


def _waves_at(means: dict[str, Tensor]) -> dict[str, LogAmplitude]:
    return {place: LogAmplitude(values) for place, values in means.items()}
