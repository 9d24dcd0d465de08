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
from minivit.recording.hooks import after
from minivit.recording.names import runnable, weights_of

Grid = tuple[int, int]  # rows and columns


@dataclass(frozen=True)
class Attention:
    """One attention between the tokens of a model."""

    name: str  # of the block, inside which the attention weights are recorded
    shape: tuple[int, ...]  # of the weights for one picture, [1, heads, tokens, tokens]
    grid: Grid | None  # rows and columns of the last map that a convolution gave before

    @property
    def heads(self) -> int:
        """How many there are."""
        return self.shape[1]


@dataclass(frozen=True)
class Layout:
    """The tokens of one attention: some that are no patches, then those of a grid of patches."""

    name: str  # of the block, inside which the attention weights are recorded
    heads: int
    grid: Grid  # rows and columns of patches
    extra: int  # class and register tokens, before the patches


class _Watch(AttentionListener):
    """Notes of each attention which modules run, the shape of its weights, and the last map."""

    def __init__(self, maps: list[Grid]) -> None:
        super().__init__(lambda name, weights: None)
        self.maps = maps
        self.found: list[tuple[list[str], torch.Size, Grid | None]] = []

    def show(self, weights: Tensor) -> None:
        grid = self.maps[-1] if self.maps else None
        self.found.append((list(self.running), weights.shape, grid))


@contextmanager
def maps_of(model: nn.Module) -> Iterator[list[Grid]]:
    """Collects the rows and columns of what convolutions give, in the order in which they run."""
    found: list[Grid] = []

    def keep(module: nn.Module, args: Any, output: Tensor) -> None:
        found.append((output.shape[-2], output.shape[-1]))

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                stack.enter_context(after(module, keep))
        yield found


def attentions(model: nn.Module, images: Tensor) -> list[Attention]:
    """Finds every attention between the tokens of a model, in the order in which they run.

    Args:
        model: minivit's, torchvision's, timm's, Hugging Face's, or any other that computes its
            attention as :func:`~minivit.recording.record` hears it.
        images: ``[batch, channels, height, width]``; the first is looked at.

    Raises:
        ValueError: The model computes no attention between tokens, or several in one block.
    """
    modules = runnable(model)
    with evaluating(model), maps_of(model) as maps, ExitStack() as stack:
        watch = _Watch(maps)
        for name, module in modules.items():
            stack.enter_context(watch.inside(module, name))
        stack.enter_context(watch)
        model(images[:1])
    found = [
        Attention(_block(model, running), shape, grid)
        for running, shape, grid in watch.found
        if shape[-1] == shape[-2]
    ]
    if not found:
        raise ValueError(
            f"{type(model).__name__} computes no attention between tokens: there is none to measure"
        )
    if len({attention.name for attention in found}) < len(found):
        names = [attention.name for attention in found]
        raise ValueError(f"expected one attention in a block: got {names}")
    return found


def layouts(model: nn.Module, images: Tensor, grid: Grid | None = None) -> list[Layout]:
    """Finds where the tokens of every attention stand on the picture.

    Args:
        model: As for :func:`attentions`.
        images: As for :func:`attentions`.
        grid: Rows and columns of patches. Default: those of the last convolution before each
            attention, as a rule the patch embedding.

    Raises:
        ValueError: As for :func:`attentions`; or the grid is not known, or the tokens are others
            than a grid of patches behind a few that are none.
    """
    return [_layout(attention, grid or attention.grid) for attention in attentions(model, images)]


def _block(model: nn.Module, running: list[str]) -> str:
    """The innermost of the modules that run which stands in a row of others, or simply that."""
    for name in reversed(running):
        row = model.get_submodule(name.rpartition(".")[0])
        if name and isinstance(row, nn.ModuleList | nn.Sequential):
            return name
    return running[-1]


def _layout(attention: Attention, grid: Grid | None) -> Layout:
    if grid is None:
        raise ValueError(
            f"no convolution runs before the attention of {attention.name!r}, so the grid of "
            "patches is not known: give grid=(rows, columns)"
        )
    pictures, heads, tokens, _ = attention.shape
    extra = tokens - grid[0] * grid[1]
    if pictures != 1 or extra < 0:
        raise ValueError(
            f"expected attention between all of a picture's {grid[0]} x {grid[1]} patches: got "
            f"{list(attention.shape)} in {attention.name!r}, [windows, heads, queries, keys]"
        )
    return Layout(attention.name, heads, grid, extra)


def same_tokens(at: list[Layout]) -> tuple[Grid, int]:
    """The grid, and the number of tokens before it, that all of these have.

    Raises:
        ValueError: They differ.
    """
    found = {(layout.grid, layout.extra) for layout in at}
    if len(found) > 1:
        raise ValueError(
            f"expected the same tokens in all blocks: got (grid, others) {sorted(found)}"
        )
    return found.pop()


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
