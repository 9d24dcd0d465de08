"""Where a model looks, drawn over the image in one line: attention by head, and rollout."""

from typing import Any

import matplotlib.style
import torch
from jaxtyping import Float, Shaped
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from vitlab.figures.overlay import numbers, overlay
from vitlab.instruments.grids import Grid
from vitlab.instruments.layout import Layout, attention_weights, layouts
from vitlab.instruments.reading import reading
from vitlab.instruments.rollout import rollout
from vitlab.instruments.running import expect

Image = Shaped[Tensor, "channels height width"] | Shaped[Tensor, "1 channels height width"]
ACROSS = 6  # panels in a line, at most


def attention_overlay(
    model: nn.Module,
    image: Image,
    *,
    block: int = -1,
    query: Grid | None = None,
    grid: Grid | None = None,
) -> Figure:
    """Draws what each head of a block attends to over the image, each in its own scale.

    ``query`` is the row and column of the patch that attends, which is framed; by default those
    tokens attend that the model's output is read from.
    """
    images = image.view(1, *image.shape[-3:])
    layout, patches = _heads(model, images, block, query, grid)
    index = None if query is None else query[0] * layout.grid[1] + query[1]
    return _panels(images[0], patches, layout.grid, "head", query=index)


def rollout_overlay(model: nn.Module, image: Image, *, grid: Grid | None = None) -> Figure:
    """Draws :func:`~vitlab.instruments.rollout.rollout` after every block over the image."""
    images = image.view(1, *image.shape[-3:])
    carried = rollout(model, images, grid=grid)
    return _panels(images[0], carried.patches[:, 0], carried.grid, "block")


def look(
    model: nn.Module,
    image: Image,
    *,
    picture: Float[Tensor, "channels height2 width2"] | None = None,
    block: int = -1,
    title: str = "",
) -> Figure:
    """Draws an image, attention rollout over it, and each head of a block: ``minivit look``.

    ``picture`` is the same view with more pixels, from 0 to 1, a multiple of the image's.
    """
    images = image.view(1, *image.shape[-3:])
    layout, heads = _heads(model, images, block, None, None)
    carried = rollout(model, images)
    background = _scaled(images[0]) if picture is None else picture
    across, down = max(min(len(heads), ACROSS), 4), -(-len(heads) // ACROSS)
    shape = background.shape[1] / background.shape[2]
    width = 1.65 * across
    top, low = 0.42 * width * shape, width / across * shape + 0.3
    with matplotlib.style.context("vitlab.figures.book"):
        figure = Figure(figsize=(width, top + low * down + 1.1), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=[top + 0.7, low * down + 0.4])
        above, below = parts
        plain = title.encode("utf-8", "backslashreplace").decode()
        figure.suptitle(plain, parse_math=False)  # a file's name may have dollars
        whole, rolled = above.subplots(1, 2)
        colours = background.expand(3, -1, -1) if len(background) == 1 else background[:3]
        whole.imshow(colours.permute(1, 2, 0).clamp(0, 1).numpy())
        whole.set_title("the image", fontsize="small")
        whole.set_axis_off()
        patches = carried.patches[-1, 0]
        overlay(rolled, background, patches, carried.grid)
        rolled.set_title(f"rollout of all blocks: {patches.max():.2f}", fontsize="small")
        below.suptitle(f"heads of {layout.name}", fontsize="small")
        axes = list(below.subplots(down, across, squeeze=False).flat)
        _draw(axes, background, heads, layout.grid, "head")
        for ax in axes:
            ax.title.set_fontsize("x-small")
    return figure


def _heads(
    model: nn.Module, images: Tensor, block: int, query: Grid | None, grid: Grid | None
) -> tuple[Layout, Float[Tensor, "heads patches"]]:
    """What each head of a block takes from each patch."""
    blocks = layouts(model, images, grid)
    if not -len(blocks) <= block < len(blocks):
        raise IndexError(f"expected one of {len(blocks)} blocks: got block={block}")
    layout = blocks[block]
    ((weights,),) = attention_weights(model, [images], [layout])  # [1, heads, tokens, tokens]
    where = list(layout.where)
    if query is not None:
        (row, column), (rows, columns) = query, layout.grid
        expect(0 <= row < rows and 0 <= column < columns, f"a patch of {rows} x {columns}", query)
        looks = weights[0, :, where[row * columns + column]]
    else:
        (read,) = reading(model, images, blocks[-1]).of(model, images)
        looks = read.to(weights) @ weights[0]
    return layout, looks[:, where].float()


def _scaled(image: Tensor) -> Float[Tensor, "channels height width"]:
    """An image as a model reads it, from 0 to 1 for its least and its largest number."""
    image = numbers(image)
    low, high = image.aminmax()
    return (image - low) / (high - low).clamp(min=torch.finfo(image.dtype).tiny)


def _panels(image: Tensor, values: Tensor, grid: Grid, name: str, **how: Any) -> Figure:
    """One panel for each row of values, [panels, patches]."""
    across, down = min(len(values), ACROSS), -(-len(values) // ACROSS)
    height = 1.6 * image.shape[1] / image.shape[2] + 0.3
    figure = Figure(figsize=(1.6 * across, height * down), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    _draw(axes, _scaled(image), values, grid, name, **how)
    return figure


def _draw(axes: list[Axes], image: Tensor, rows: Tensor, grid: Grid, name: str, **how: Any) -> None:
    """Overlays the image with each row of values; a title has its number and largest value."""
    for i, (ax, row) in enumerate(zip(axes, rows, strict=False)):
        overlay(ax, image, row, grid, **how)
        ax.set_title(f"{name} {i}: {row.max():.2f}", fontsize="small")
    for ax in axes[len(rows) :]:
        ax.set_axis_off()
