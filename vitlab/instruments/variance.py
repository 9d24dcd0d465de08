"""How much features differ from position to position: Park & Kim (2022), figure 9."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float64, Shaped
from torch import Tensor, nn

from minivit.hooks import before
from minivit.recording import one, tensors_in
from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import Places, representations
from vitlab.instruments.residuals import branches, residuals
from vitlab.instruments.running import Images, batches, evaluating, expect

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
    first, stream = batches(images, batch_size)
    places = Places(model, first, grid)
    total, count = torch.zeros(()).double(), 0
    for batch in stream:
        parts = representations(model, batch, names)
        total = total + _sums(places.split(x)[1].flatten(1, 2) for x in parts.values())
        count += len(batch)
    return Variance(tuple(parts), *(total / count))


def branch_variance(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 64
) -> BranchVariance:
    """Variance over positions around every residual connection, mean over features and images.

    Of the stream before and after it, of what the branch reads, and of what it adds.
    """
    first, stream = batches(images, batch_size)
    names = branches(model, first, axes=3)  # none of vectors, after the pooling
    expect(len(set(names)) == len(names), "sub-layers that run once each", names)
    places = Places(model, first, grid)
    parts: dict[tuple[str, str], Tensor] = {}

    def keep(place: str, name: str, x: Tensor) -> None:
        parts[place, name] = places.split(x)[1].flatten(1, 2)

    def read(name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        keep("reads", name, tensors_in((args, kwargs))[0])

    def report(name: str, branch: Tensor, skip: Tensor) -> None:
        if name in names:
            for place, x in ("before", skip), ("branch", branch), ("after", skip + branch):
                keep(place, name, x)

    total, count = torch.zeros(()).double(), 0
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(before(one(model, name), partial(read, name)))
        stack.enter_context(evaluating(model))
        stack.enter_context(residuals(model, report))
        for batch in stream:
            model(batch)
            total = total + _sums(parts[place, name] for place in PLACES for name in names)
            count += len(batch)
    means = (total / count).view(2, len(PLACES), len(names))
    return BranchVariance(tuple(names), *means)


def _sums(parts: Iterable[Tensor]) -> Float64[Tensor, "2 parts"]:
    """Variance over positions and mean square of parts, [batch, positions, dim], summed over it."""
    sums = [
        torch.stack([variance_over_positions(x).sum(), x.double().square().mean((1, 2)).sum()])
        for x in parts
    ]
    return torch.stack(sums, 1).cpu()
