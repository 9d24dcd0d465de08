"""Where a model looks, drawn over the image in one line: attention by head, and rollout."""

import torch
from jaxtyping import Float, Shaped
from matplotlib.figure import Figure
from torch import Tensor, nn

from minivit.analysis.grids import Grid, rows_and_columns
from minivit.analysis.layout import attention_weights, layouts
from minivit.analysis.rollout import rollout
from minivit.analysis.running import batches
from minivit.figures.overlay import numbers, overlay

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
        grid: As for :func:`~minivit.analysis.distance.attention_distance`.
    """
    images = _one(image)
    found = layouts(model, images, grid)
    if not -len(found) <= block < len(found):
        raise IndexError(f"expected one of {len(found)} blocks: got block={block}")
    at = found[block]
    ((weights,),) = attention_weights(model, [images], [at])  # [1, heads, tokens, tokens]
    rows, columns = at.grid
    index = None
    if query is not None:
        row, column = rows_and_columns(query, "query")
        if not (0 <= row < rows and 0 <= column < columns):
            raise ValueError(f"expected a patch of {rows} x {columns}: got {query}")
        index = row * columns + column
        looks = weights[0, :, at.where[index]]
    else:
        looks = weights[0, :, list(at.where)].mean(1) if 0 in at.where else weights[0, :, 0]
    patches = looks[:, list(at.where)].float()  # [heads, patches]
    titles = [f"head {i}: {row.max():.2f}" for i, row in enumerate(patches)]
    return _panels(images[0], patches, at.grid, titles, index)


def rollout_overlay(
    model: nn.Module, image: Image, *, identity: float = 0.5, grid: Grid | None = None
) -> Figure:
    """Draws :func:`~minivit.analysis.rollout.rollout` after every block over the image."""
    images = _one(image)
    found = rollout(model, images, identity=identity, grid=grid)
    patches = found.patches[:, 0]  # [blocks, patches]
    titles = [f"block {i}: {row.max():.2f}" for i, row in enumerate(patches)]
    return _panels(images[0], patches, found.grid, titles)


def _one(image: Tensor) -> Shaped[Tensor, "1 channels height width"]:
    """A batch of one image, checked."""
    images = image[None] if image.ndim == 3 else image
    if images.ndim != 4 or len(images) != 1:
        raise ValueError(f"expected one image [channels, height, width]: got {list(image.shape)}")
    _, checked = batches(images, 1)
    return next(checked)


def _panels(
    image: Shaped[Tensor, "channels height width"],
    values: Float[Tensor, "panels patches"],
    grid: Grid,
    titles: list[str],
    query: int | None = None,
) -> Figure:
    """One panel for each row of values, at most six in a line."""
    image = numbers(image, "a finite image")
    low, high = image.aminmax()
    picture = (image - low) / (high - low).clamp(min=torch.finfo(image.dtype).tiny)
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
