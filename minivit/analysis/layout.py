"""Where a model computes attention, and where on the picture its tokens stand.

Names differ between libraries; what happens in a call does not. So a model is called once, on one
picture, and watched: each attention belongs to the block that it runs in, and its patches lie on
the grid that the last convolution before it gave. A pool that reads all tokens by a query of its
own is no attention between tokens, and is left out.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from minivit.analysis.running import evaluating
from minivit.recording import record
from minivit.recording.attention import AttentionListener
from minivit.recording.names import runnable, weights_of

Grid = tuple[int, int]  # rows and columns


@dataclass(frozen=True)
class Layout:
    """One attention of a model, and its tokens: some that are no patches, then the patches."""

    name: str  # of the block, inside which the attention weights are recorded
    heads: int
    grid: Grid  # rows and columns of patches
    extra: int  # class and register tokens, before the patches


class _Watch(AttentionListener):
    """Notes of each attention which modules run, the shape of its weights, and the last map."""

    def __init__(self, maps: list[Grid]) -> None:
        super().__init__(lambda name, weights: None)
        self.maps = maps
        self.found: list[tuple[list[str], torch.Size, list[Grid]]] = []

    def show(self, weights: Tensor) -> None:
        self.found.append((list(self.running), weights.shape, self.maps[-1:]))


@contextmanager
def maps_of(model: nn.Module) -> Iterator[list[Grid]]:
    """Collects the rows and columns of what convolutions give, in the order in which they run."""
    found: list[Grid] = []

    def keep(module: nn.Module, args: Any, output: Tensor) -> None:
        found.append((output.shape[-2], output.shape[-1]))

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                stack.callback(module.register_forward_hook(keep).remove)
        yield found


def layouts(model: nn.Module, images: Tensor, grid: tuple[int, int] | None = None) -> list[Layout]:
    """Finds every attention between the tokens of a model, in the order in which they run.

    Args:
        model: minivit's, torchvision's, timm's, Hugging Face's, or any other that computes its
            attention as :func:`~minivit.recording.record` hears it.
        images: ``[batch, channels, height, width]``; the first is looked at.
        grid: Rows and columns of patches. Default: those of the last convolution before each
            attention, as a rule the patch embedding.

    Raises:
        ValueError: The model computes no attention between tokens, several in one block, or of
            other tokens than a grid of patches behind a few that are none.
    """
    modules = runnable(model)
    with evaluating(model), maps_of(model) as maps, ExitStack() as stack:
        watch = _Watch(maps)
        for name, module in modules.items():
            stack.enter_context(watch.inside(module, name))
        stack.enter_context(watch)
        model(images[:1])
    found = [
        _layout(_block(model, running), shape, seen if grid is None else [grid])
        for running, shape, seen in watch.found
        if shape[-1] == shape[-2]
    ]
    if not found:
        raise ValueError(
            f"{type(model).__name__} computes no attention between tokens: there is none to measure"
        )
    if len({at.name for at in found}) < len(found):
        raise ValueError(f"expected one attention in a block: got {[at.name for at in found]}")
    return found


def _block(model: nn.Module, running: list[str]) -> str:
    """The innermost of the modules that run which stands in a row of others, or simply that."""
    for name in reversed(running):
        row = model.get_submodule(name.rpartition(".")[0])
        if name and isinstance(row, nn.ModuleList | nn.Sequential):
            return name
    return running[-1]


def _layout(name: str, shape: torch.Size, maps: list[Grid]) -> Layout:
    if not maps:
        raise ValueError(
            f"no convolution runs before the attention of {name!r}, so the grid of patches is not "
            "known: give grid=(rows, columns)"
        )
    (grid,) = maps
    batch, heads, tokens, _ = shape
    extra = tokens - grid[0] * grid[1]
    if batch != 1 or extra < 0:
        raise ValueError(
            f"expected attention between all of a picture's {grid[0]} x {grid[1]} patches: "
            f"got {list(shape)} for one picture in {name!r}, [windows, heads, queries, keys]"
        )
    return Layout(name, heads, grid, extra)


def attention_weights(
    model: nn.Module, images: Iterable[Tensor], at: list[Layout]
) -> Iterator[list[Tensor]]:
    """Gives the attention weights of one batch of images after the other, without gradients.

    Args:
        model: Any module.
        images: Batches ``[batch, channels, height, width]``.
        at: Which, as :func:`layouts` gives them.

    Yields:
        For each layout ``[batch, heads, tokens, tokens]``.
    """
    names = [weights_of(layout.name) for layout in at]
    for batch in images:
        with evaluating(model), record(model, *names) as seen:
            model(batch)
        yield [seen[name] for name in names]
