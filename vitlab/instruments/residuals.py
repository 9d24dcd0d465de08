"""Finds the residual connections of a model from any library by watching it run.

A residual connection shows in the inputs and outputs of modules. While a module runs, a tensor
appears that is exactly the sum of two others: the skip, which was there before, and the branch,
which the last call gave. The branch belongs to the module called in between that has most
parameters: attention, an MLP.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import runnable, tensors_in
from vitlab.instruments.running import evaluating

Report = Callable[[str, Tensor, Tensor], None]  # of a module's name, its branch, and the skip
Calls = list[tuple[str, int]]  # of modules, by name and number of parameters


def largest(calls: Calls) -> str:
    """The module that a branch is named after: the one with most parameters."""
    return max(calls, key=lambda call: call[1])[0]


def last(calls: Calls) -> str:
    """The module that a branch ends in, but for what has no parameters.

    It is not the largest where a norm or a LayerScale follows: what a norm gives for zeros is its
    bias, so that only zeros of its own leave the skip alone.
    """
    return next((name for name, size in reversed(calls) if size), calls[-1][0])


class _Frame:
    """The tensors seen while one module runs: its inputs, and its parts' inputs and outputs."""

    def __init__(self, name: Callable[[Calls], str]) -> None:
        self.name = name  # of a branch, by the parts that ran
        self.seen: list[tuple[Tensor, int]] = []  # and how many parts had run by then
        self.calls: Calls = []

    def meet(self, tensor: Tensor, report: Report) -> None:
        """Remembers a tensor, and reports it if it is the sum of two."""
        if any(tensor is other for other, _ in self.seen):
            return
        if self.calls:
            self._report(tensor, report)
        self.seen.append((tensor, len(self.calls)))

    def _report(self, total: Tensor, report: Report) -> None:
        """Reports a sum of the last tensor that was new, or else the last that was seen."""
        new = [
            (tensor, calls)
            for i, (tensor, calls) in enumerate(self.seen)
            if not any(tensor is other for other, _ in self.seen[:i])
        ]  # an identity gives its input again, as on the way of ConvNeXt's skip
        for tensors in (new, self.seen):
            branch, _ = tensors[-1]
            for skip, calls in reversed(tensors[:-1]):
                if skip.shape == branch.shape == total.shape and torch.equal(skip + branch, total):
                    report(self.name(self.calls[calls:]), branch, skip)
                    return


@contextmanager
def residuals(
    model: nn.Module, report: Report, name: Callable[[Calls], str] = largest
) -> Iterator[None]:
    """Reports every residual connection of a model that runs in the block, in order.

    ``report`` gets the name of the module that computes the branch, which ``name`` picks, and the
    model's own tensors of branch and skip. A sum computed in place, or reshaped before a module
    reads it, is not seen.
    """
    frames: list[_Frame] = []

    def watch(part: str, module: nn.Module) -> None:
        size = sum(parameter.numel() for parameter in module.parameters())

        def begin(_: nn.Module, args: Any, kwargs: Any) -> None:
            frame = _Frame(name)
            given = tensors_in((args, kwargs))
            if frames and given:
                frames[-1].meet(given[0], report)
            frame.seen += [(tensor, 0) for tensor in given]  # also a skip that is given beside it
            frames.append(frame)

        def end(_: nn.Module, args: Any, output: Any) -> None:
            frame = frames.pop()
            for tensor in tensors_in(output)[:1]:
                frame.meet(tensor, report)
                if frames:
                    frames[-1].calls.append((part, size))
                    frames[-1].seen.append((tensor, len(frames[-1].calls)))

        stack.enter_context(before(module, begin))
        stack.enter_context(after(module, end))

    with ExitStack() as stack:
        for part, module in runnable(model).items():
            watch(part, module)
        yield


def branches(
    model: nn.Module, images: Tensor, name: Callable[[Calls], str] = largest, *, axes: int = 0
) -> list[str]:
    """Names the modules whose output, of so many axes or more, is added to their input, in order.

    ValueError where there is none.
    """
    names: list[str] = []

    def note(name: str, branch: Tensor, skip: Tensor) -> None:
        if branch.ndim >= axes:
            names.append(name)

    with evaluating(model), residuals(model, note, name):
        model(images[:1])
    if not names:
        raise ValueError(f"no residual connection is seen in {type(model).__name__}")
    return names
