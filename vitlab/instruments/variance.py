"""How features differ from position to position: Park & Kim (2022), figure 9, and their waves."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float64, Shaped
from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import find, one, runnable, tensors_in
from vitlab.instruments.frequency import LogAmplitude, log_amplitude
from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import Means, named, representations
from vitlab.instruments.residuals import branches, residuals
from vitlab.instruments.running import Images, expect

PLACES = ("before", "reads", "branch", "after")


def variance_over_positions(x: Shaped[Tensor, "batch positions dim"]) -> Float64[Tensor, "batch"]:
    """The variance of each feature over all positions; mean of features."""
    return x.double().var(1, correction=0).mean(1)


@dataclass(frozen=True, eq=False)
class Variance:
    """Variance over positions, mean over features and images, of the outputs of named parts."""

    names: tuple[str, ...]  # in the order they run
    values: Float64[Tensor, "names"]
    mean_square: Float64[Tensor, "names"]  # of the features

    @property
    def share(self) -> Float64[Tensor, "names"]:
        """Fraction of the mean square. It does not grow with the features as a whole."""
        return self.values / self.mean_square


@dataclass(frozen=True, eq=False)
class BranchVariance:
    """Variance over positions around every residual connection ``after = before + branch``."""

    names: tuple[str, ...]  # of the sub-layers, in the order they run
    values: Float64[Tensor, "places names"]  # in the order of PLACES
    mean_square: Float64[Tensor, "places names"]

    def at(self, place: str) -> Variance:
        """At one of the PLACES: of the stream before and after, what is read, and the branch."""
        row = PLACES.index(place)
        return Variance(self.names, self.values[row], self.mean_square[row])


def feature_variance(
    model: nn.Module, images: Images, *names: str, grid: Grid | None = None, batch_size: int = 64
) -> Variance:
    """Variance over positions of what named parts give: patches' tokens, or feature maps."""
    means = Means(model, images, _sums, grid, batch_size)
    for batch in means.stream:
        for name, x in representations(model, batch, names).items():
            means.add(name, after=x)
    table = torch.stack([at["after"] for at in means.result().values()], 1)
    return Variance(tuple(means.sums), *table)


def branch_variance(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 64
) -> BranchVariance:
    """Variance over positions around every residual connection, mean over features and images.

    Of the stream before and after it, of what the branch reads, and of what it adds.
    """
    means = Means(model, images, _sums, grid, batch_size)
    names = branches(model, means.first, axes=3)  # none of vectors, after the pooling
    expect(len(set(names)) == len(names), "sub-layers that run once each", names)

    def read(name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        means.add(name, reads=tensors_in((args, kwargs))[0])

    def report(name: str, branch: Tensor, skip: Tensor) -> None:
        if name in names:
            means.add(name, before=skip, branch=branch, after=skip + branch)

    hooks = (before(one(model, name), partial(read, name)) for name in names)
    at = means.over(*hooks, residuals(model, report))
    rows = [torch.stack([at[name][place] for name in names], 1) for place in PLACES]
    return BranchVariance(tuple(names), *torch.stack(rows, 1))


def _sums(patches: Tensor) -> Float64[Tensor, "2"]:
    """Variance over positions and mean square, summed over the batch."""
    x = patches.flatten(1, 2)
    return torch.stack([variance_over_positions(x).sum(), x.double().square().mean((1, 2)).sum()])


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
    waves = Means(model, images, _amplitudes, grid, batch_size)

    def read(name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        waves.add(name, before=tensors_in((args, kwargs))[0])

    def give(name: str, module: nn.Module, args: Any, output: Any) -> None:
        waves.add(name, after=tensors_in(output)[0])

    reads = (before(module, partial(read, name)) for name, module in modules.items())
    gives = (after(module, partial(give, name)) for name, module in modules.items())
    means = waves.over(*reads, *gives)
    missing = sorted(modules.keys() - means.keys())
    expect(not missing, "modules that the model runs", missing)
    return {name: Passage(*map(LogAmplitude, ends.values())) for name, ends in means.items()}


def stream_frequencies(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> dict[str, Addition]:
    """The log amplitudes of skip, branch and sum before the pooling, by the name of the branch."""
    waves = Means(model, images, _amplitudes, grid, batch_size)

    def keep(name: str, branch: Tensor, skip: Tensor) -> None:
        if skip.ndim > 2:  # and not pooled
            waves.add(name, skip=skip, branch=branch, sum=skip + branch)

    means = waves.over(residuals(model, keep))
    if not means:
        raise ValueError(f"no residual connection is seen in {type(model).__name__}")
    return {name: Addition(*map(LogAmplitude, terms.values())) for name, terms in means.items()}


def _amplitudes(patches: Tensor) -> Tensor:
    return log_amplitude(patches.movedim(-1, 1)).values * len(patches)
