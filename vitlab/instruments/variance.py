"""How much features differ from position to position: Park & Kim (2022), figure 9."""

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
from vitlab.instruments.representations import Means, Places, representations
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
    means = Means(Places(model, first, grid), _sums)
    for batch in stream:
        for name, x in representations(model, batch, names).items():
            means.add(name, after=x)
    table = torch.stack([means.of(name)["after"] for name in means.sums], 1)
    return Variance(tuple(means.sums), *table)


def branch_variance(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 64
) -> BranchVariance:
    """Variance over positions around every residual connection, mean over features and images.

    Of the stream before and after it, of what the branch reads, and of what it adds.
    """
    first, stream = batches(images, batch_size)
    names = branches(model, first, axes=3)  # none of vectors, after the pooling
    expect(len(set(names)) == len(names), "sub-layers that run once each", names)
    means = Means(Places(model, first, grid), _sums)

    def read(name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        means.add(name, reads=tensors_in((args, kwargs))[0])

    def report(name: str, branch: Tensor, skip: Tensor) -> None:
        if name in names:
            means.add(name, before=skip, branch=branch, after=skip + branch)

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(before(one(model, name), partial(read, name)))
        stack.enter_context(evaluating(model))
        stack.enter_context(residuals(model, report))
        for batch in stream:
            model(batch)
    rows = [torch.stack([means.of(name)[place] for name in names], 1) for place in PLACES]
    return BranchVariance(tuple(names), *torch.stack(rows, 1))


def _sums(patches: Tensor) -> Float64[Tensor, "2"]:
    """Variance over positions and mean square, summed over the batch."""
    x = patches.flatten(1, 2)
    return torch.stack([variance_over_positions(x).sum(), x.double().square().mean((1, 2)).sum()])
