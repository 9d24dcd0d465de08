"""Where a model looks, drawn over the image in one line: attention by head, and rollout."""

import torch
from jaxtyping import Float, Shaped
from matplotlib.figure import Figure
from torch import Tensor, nn

from vitlab.figures.overlay import numbers, overlay
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.layout import Layout, attention_weights, layouts
from vitlab.instruments.rollout import rollout
from vitlab.instruments.running import batches

Image = Shaped[Tensor, "channels height width"] | Shaped[Tensor, "1 channels height width"]


def attention_overlay(
    model: nn.Module,
    image: Image,
    *,
    block: int = -1,
    query: Grid | None = None,
    grid: Grid | None = None,
) -> Figure:
    """Draws what each head of a block attends to, over the image::

        attention_overlay(model, image, block=3)

    Every head has its own colour scale; its largest weight is in its title.

    Args:
        block: Index among the blocks with attention. Default: the last.
        query: Row and column of the patch that attends, which is framed. Default: the first token,
            or the mean of all patches if that is one.
        grid: As for :func:`~vitlab.instruments.distance.attention_distance`.
    """
    images = one_image(image)
    at, patches = heads_read(model, images, layouts(model, images, grid), block, query)
    index = None if query is None else query[0] * at.grid[1] + query[1]
    titles = [f"head {i}: {row.max():.2f}" for i, row in enumerate(patches)]
    return _panels(images[0], patches, at.grid, titles, index)


def heads_read(
    model: nn.Module,
    images: Shaped[Tensor, "1 channels height width"],
    found: list[Layout],
    block: int,
    query: Grid | None = None,
) -> tuple[Layout, Float[Tensor, "heads patches"]]:
    """What each head of a block takes from each patch, as :func:`attention_overlay` draws it."""
    if not -len(found) <= block < len(found):
        raise IndexError(f"expected one of {len(found)} blocks: got block={block}")
    at = found[block]
    ((weights,),) = attention_weights(model, [images], [at])  # [1, heads, tokens, tokens]
    rows, columns = at.grid
    if query is not None:
        row, column = rows_and_columns(query, "query")
        if not (0 <= row < rows and 0 <= column < columns):
            raise ValueError(f"expected a patch of {rows} x {columns}: got {query}")
        looks = weights[0, :, at.where[row * columns + column]]
    else:
        looks = weights[0, :, list(at.where)].mean(1) if 0 in at.where else weights[0, :, 0]
    return at, looks[:, list(at.where)].float()


def rollout_overlay(
    model: nn.Module, image: Image, *, identity: float = 0.5, grid: Grid | None = None
) -> Figure:
    """Draws :func:`~vitlab.instruments.rollout.rollout` after every block over the image."""
    images = one_image(image)
    found = rollout(model, images, identity=identity, grid=grid)
    patches = found.patches[:, 0]  # [blocks, patches]
    titles = [f"block {i}: {row.max():.2f}" for i, row in enumerate(patches)]
    return _panels(images[0], patches, found.grid, titles)


def one_image(image: Tensor) -> Shaped[Tensor, "1 channels height width"]:
    """A batch of one image, checked."""
    images = image[None] if image.ndim == 3 else image
    if images.ndim != 4 or len(images) != 1:
        raise ValueError(f"expected one image [channels, height, width]: got {list(image.shape)}")
    _, checked = batches(images, 1)
    return next(checked)


def scaled(
    image: Shaped[Tensor, "channels height width"],
) -> Float[Tensor, "channels height width"]:
    """An image as a model reads it, from 0 to 1 for its least and its largest number."""
    image = numbers(image, "a finite image")
    low, high = image.aminmax()
    return (image - low) / (high - low).clamp(min=torch.finfo(image.dtype).tiny)


def _panels(
    image: Shaped[Tensor, "channels height width"],
    values: Float[Tensor, "panels patches"],
    grid: Grid,
    titles: list[str],
    query: int | None = None,
) -> Figure:
    """One panel for each row of values, at most six in a line."""
    picture = scaled(image)
    across = min(len(values), 6)
    down = -(-len(values) // across)
    height = 1.6 * image.shape[1] / image.shape[2] + 0.3
    figure = Figure(figsize=(1.6 * across, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).flat
    for ax, row, title in zip(axes, values, titles, strict=False):
        overlay(ax, picture, row, grid, query=query)
        ax.set_title(title, fontsize="small")
    for ax in axes[len(values) :]:
        ax.set_axis_off()
    return figure
