"""Where in the image the tokens of an attention are, found by changing the image.

A token that is the same for two images, before tokens are mixed, comes from no patch. The others
are the patches, and the last feature map with as many positions has their rows and columns.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from minivit.recording import record, weights_of
from vitlab.instruments.attentions import AXES, Attention, Watch, watching
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.running import evaluating, expect
from vitlab.instruments.tracing import changed_tokens, in_reading_order, noise_like, windows_of


@dataclass(frozen=True)
class Layout:
    """The tokens of one attention: a grid of patches, and others."""

    name: str  # of the block, inside which the attention weights are recorded
    heads: int
    tokens: int
    grid: Grid  # rows and columns of patches
    where: tuple[int, ...]  # for each patch, in reading order, the index of its token
    size: tuple[float, float]  # height and width of the patches together, in pixels
    # For each place in each window, the index of its token; -1 where windows are padded.
    windows: Int64[Tensor, "windows places"] = field(compare=False, repr=False)

    @property
    def extra(self) -> int:
        """The number of class, register and other tokens besides the patches."""
        return self.tokens - len(self.where)

    @property
    def patches(self) -> Int64[Tensor, "windows places"]:
        """For each place in each window, the number of its patch; -1 where there is none."""
        number = torch.full([self.tokens + 1], -1)
        number[list(self.where)] = torch.arange(len(self.where))
        return number[self.windows]


_BETWEEN_ALL = "attention between all of an image's {} x {} patches"


def layouts(
    model: nn.Module, images: Tensor, grid: Grid | None = None, *, windows: bool = False
) -> list[Layout]:
    """Finds where in the image the tokens of every attention are.

    ``grid`` is by default that of the last convolution with a position for each patch, or, of a
    model that attends in windows, of the first. Attention in ``windows`` is refused if not wanted.
    """
    grid = None if grid is None else rows_and_columns(grid)
    noise = noise_like(images)
    known: dict[int, Layout] = {}  # by the number of tokens
    with watching(model, images) as watch:
        attentions = watch.look(images)
        if windows and any(len(a.shape) == 4 and a.shape[0] > 1 for a in attentions):
            return _in_windows(model, watch, images, attentions, grid)
        for attention, other in zip(attentions, watch.look(noise), strict=True):
            _check(attention, grid)
            tokens = attention.shape[-1]
            if tokens in known:
                continue
            changed = changed_tokens(attention, other)
            shape, where = _patches(attention, changed, grid, list(known.values()))
            if not known:
                where = in_reading_order(watch, noise, other, shape, where)
            (_, down), (_, right) = watch.centres(shape)
            size = (down * shape[0], right * shape[1])
            all_tokens = torch.arange(tokens)[None]  # are one window
            known[tokens] = Layout("", 0, tokens, shape, tuple(where), size, all_tokens)
    return [replace(known[a.shape[-1]], name=a.name, heads=a.heads) for a in attentions]


def _in_windows(
    model: nn.Module, watch: Watch, images: Tensor, found: list[Attention], grid: Grid | None
) -> list[Layout]:
    """The same for a model that attends in windows, which may merge patches between blocks."""
    windows = windows_of(model, images, found, _last_grid(found[0], grid))
    watch.counts = {name: grid[0] * grid[1] for name, (grid, _) in windows.items()}
    noise = noise_like(images)
    (base,) = watch.look(noise, first=True)
    first, _ = windows[base.name]
    in_reading_order(watch, noise, base, first, list(range(first[0] * first[1])))
    (_, down), (_, right) = watch.centres(first)
    size = (down * first[0], right * first[1])
    return [
        Layout(a.name, a.heads, count, grid, tuple(range(count)), size, tokens)
        for a in found
        for count, (grid, tokens) in [(watch.counts[a.name], windows[a.name])]
    ]


def outside(model: nn.Module, images: Tensor) -> tuple[int, list[int]]:
    """How many tokens a model's first attention has, if any, and which come from no patch."""
    with suppress(ValueError):  # of a model without attention
        if images.ndim == 4 and images.is_floating_point():
            with watching(model, images) as watch:
                (attention,) = watch.look(images, first=True)
                (other,) = watch.look(noise_like(images), first=True)
            tokens, changed = attention.shape[-1], changed_tokens(attention, other)
            return tokens, [i for i in range(tokens) if i not in changed]
    return 0, []


def _check(attention: Attention, grid: Grid | None) -> None:
    """Refuses attention without a known grid of patches, and attention in windows."""
    last, got = _last_grid(attention, grid), f"{list(attention.shape)} in {attention.name!r}"
    expect(len(attention.shape) == 4, AXES, got)
    windows = f"{got}, [windows, heads, queries, keys]"
    expect(attention.shape[0] == 1, _BETWEEN_ALL.format(*last), windows)


def _last_grid(attention: Attention, grid: Grid | None) -> Grid:
    if grid is None and not attention.maps:
        at = f"before the attention of {attention.name!r}"
        raise ValueError(f"no convolution runs {at}: give grid=(rows, columns)")
    return grid or attention.maps[-1]


def _patches(
    attention: Attention, changed: list[int], grid: Grid | None, before: list[Layout]
) -> tuple[Grid, list[int]]:
    """The grid, and which of the tokens are its patches, in the model's order."""
    last = _last_grid(attention, grid)
    tokens = attention.shape[-1]
    # Once tokens are mixed all of them change, or none, after a branch that still gives zeros: the
    # tokens that are no patches are where they were before.
    fits = before and tokens == last[0] * last[1] + before[-1].extra
    if fits and len(changed) in (0, tokens):
        lead = min(before[-1].where)
        return last, list(range(lead, lead + last[0] * last[1]))
    for rows, columns in [grid] if grid else reversed(attention.maps):
        if rows * columns == len(changed):
            return (rows, columns), changed
    got = f"{list(attention.shape)} in {attention.name!r}"
    got = f"{got}, where {len(changed)} of {tokens} tokens come from the image"
    raise ValueError(f"expected {_BETWEEN_ALL.format(*last)}: got {got}")


def same_tokens(at: list[Layout]) -> Layout:
    """Any of these layouts, after making sure that all have the same tokens."""
    alike = len({(layout.grid, layout.where, layout.tokens) for layout in at}) == 1
    got = sorted({(layout.grid, layout.extra) for layout in at})
    expect(alike, "the same tokens in all blocks", f"(grid, others) {got}")
    return at[0]


def attention_weights(
    model: nn.Module, images: Iterable[Tensor], at: list[Layout]
) -> Iterator[list[Float[Tensor, "batch heads tokens tokens"]]]:
    """Yields the attention weights of each layout, batch by batch, without gradients."""
    names = [weights_of(layout.name) for layout in at]
    for batch in images:
        with evaluating(model), record(model, *names) as seen:
            model(batch)
        checked = [weights_in(seen, layout, len(batch), shared=True) for layout in at]
        yield [weights.expand(max(len(batch), len(weights)), -1, -1, -1) for weights in checked]


def weights_in(
    seen: dict[str, Tensor], layout: Layout, count: int, *, shared: bool = False
) -> Float[Tensor, "batch heads tokens tokens"]:
    """A layout's attention weights for so many images, or, if ``shared``, one set for all of them.

    The first axis has the windows of each image, if the model attends in windows.
    """
    name, (windows, places) = weights_of(layout.name), layout.windows.shape
    weights, expected = seen[name], [count * windows, layout.heads, places, places]
    fits = list(weights.shape) in (expected, [1 if shared else expected[0], *expected[1:]])
    got = f"{list(weights.shape)}; give one image at a time, batch_size=1"
    expect(fits, f"{name!r} {expected} for {count} images", got)
    return weights
