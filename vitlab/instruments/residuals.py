"""The residual connections of a model from any library, and how much each adds to the stream.

While a module runs, a tensor appears that is exactly the sum of two others: the skip, which was
there before, and the branch, which the last call gave; or of three, where the last two calls gave a
branch each, side by side.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import runnable, tensors_in
from vitlab.instruments.running import Images, batches, entered, evaluating, expect

Report = Callable[[str, Tensor, Tensor], None]  # of a module's name, its branch, and the skip
Calls = list[tuple[str, int]]  # of modules, by name and number of parameters
Name = Callable[[Calls], str]  # of a branch, by the modules called for it


def largest(calls: Calls) -> str:
    """The module that a branch is named after: the one with most parameters."""
    return max(calls, key=lambda call: call[1])[0]


def last(calls: Calls) -> str:
    """The module that a branch ends in, but for what has no parameters: a norm, if one follows."""
    return next((name for name, size in reversed(calls) if size), calls[-1][0])


class _Frame:
    """The tensors of one running module: its inputs, and its parts' inputs and outputs."""

    def __init__(self, name: Name, report: Report) -> None:
        self.name, self.report = name, report
        self.tensors: list[tuple[Tensor, int]] = []  # and how many parts had run by then
        self.calls: Calls = []

    def add(self, total: Tensor) -> None:
        """Remembers a tensor, and reports it if it is a sum of the last new one, or of the last."""
        if any(total is other for other, _ in self.tensors):
            return
        new = [
            (tensor, calls)
            for i, (tensor, calls) in enumerate(self.tensors)
            if not any(tensor is other for other, _ in self.tensors[:i])
        ]  # an identity gives its input again, as on the way of ConvNeXt's skip
        self.tensors.append((total, len(self.calls)))
        for tensors in (new, self.tensors[:-1]) if self.calls else ():
            branch, _ = tensors[-1]
            for skip, calls in reversed(tensors[:-1]):
                if skip.shape == branch.shape == total.shape and torch.equal(skip + branch, total):
                    self.report(self.name(self.calls[calls:]), branch, skip)
                    return
            if len(tensors) > 2 and self._side_by_side(total, tensors):
                return

    def _side_by_side(self, total: Tensor, tensors: list[tuple[Tensor, int]]) -> bool:
        """Reports the last two branches, if a tensor is the sum of both and what was there."""
        *skips, (one, first), (two, second) = tensors
        for skip, calls in reversed(skips):
            same = skip.shape == one.shape == two.shape == total.shape
            if same and any(torch.equal(total, x) for x in (skip + one + two, skip + (one + two))):
                self.report(self.name(self.calls[calls:first]), one, skip)
                self.report(self.name(self.calls[first:second]), two, skip)
                return True
        return False


@contextmanager
def residuals(model: nn.Module, report: Report, name: Name = largest) -> Iterator[None]:
    """Reports every residual connection of a model that runs in the block, in order.

    ``report`` gets a name, that of the largest module called for the branch, the branch and the
    skip. A sum computed in place or reshaped is not seen.
    """
    frames: list[_Frame] = []
    modules = runnable(model)
    sizes = {part: sum(p.numel() for p in module.parameters()) for part, module in modules.items()}

    def begin(module: nn.Module, args: Any, kwargs: Any) -> None:
        given = tensors_in((args, kwargs))
        if frames and given:
            frames[-1].add(given[0])
        frames.append(_Frame(name, report))
        frames[-1].tensors += [(tensor, 0) for tensor in given]  # also a skip beside the branch

    def end(part: str, module: nn.Module, args: Any, output: Any) -> None:
        frame = frames.pop()
        for tensor in tensors_in(output)[:1]:
            frame.add(tensor)
            if frames:
                frames[-1].calls.append((part, sizes[part]))
                frames[-1].tensors.append((tensor, len(frames[-1].calls)))

    begins = (before(module, begin) for module in modules.values())
    ends = (after(module, partial(end, part)) for part, module in modules.items())
    with entered([*begins, *ends]):
        yield


def branches(model: nn.Module, images: Tensor, name: Name = largest, *, axes: int = 0) -> list[str]:
    """Names the modules whose output, of so many axes or more, is added to their input."""
    names: list[str] = []

    def note(name: str, branch: Tensor, skip: Tensor) -> None:
        if branch.ndim >= axes:
            names.append(name)

    with evaluating(model), residuals(model, note, name):
        model(images[:1])
    if not names:
        raise ValueError(f"no residual connection is seen in {type(model).__name__}")
    return names


@dataclass(frozen=True, eq=False)
class BranchRatios:
    """Norms of the branches over those of what they are added to, by token: means over images."""

    names: tuple[str, ...]  # of the sub-layers, in the order they run
    ratio: Float64[Tensor, "branches tokens"]


def branch_ratios(model: nn.Module, images: Images, *, batch_size: int = 16) -> BranchRatios:
    r"""Compares the two terms of every residual connection ``x + f(x)`` between tokens.

    The ratio is :math:`\|f(x)\| / \|x\|`, whose inverse is in Raghu et al. (2021), figure 8.
    """
    total, count = torch.zeros((), dtype=torch.float64), 0
    rows: list[tuple[str, Tensor]] = []  # [tokens] of each sub-layer, summed over the batch

    def keep(name: str, branch: Tensor, skip: Tensor) -> None:
        if branch.ndim == 3:
            over, under = (t.double().norm(dim=-1) for t in (branch, skip))  # [b, tokens]
            rows.append((name, (over / under).sum(0).cpu()))

    for batch in batches(images, batch_size)[1]:
        rows.clear()
        with evaluating(model), residuals(model, keep):
            model(batch)
        if not rows:
            kind = type(model).__name__
            raise ValueError(f"no residual connection between tokens is seen in {kind}")
        tokens = {name: len(row) for name, row in rows}
        expect(len(set(tokens.values())) == 1, "equally many tokens everywhere", tokens)
        total = total + torch.stack([row for _, row in rows])  # [sub-layers, tokens]
        count += len(batch)
    return BranchRatios(tuple(name for name, _ in rows), total / count)
