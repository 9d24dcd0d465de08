"""Where a model looks, over the picture, in one line: attention head by head, and rollout."""

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from minivit.analysis.lattice import Grid
from minivit.analysis.layout import attention_weights, layouts
from minivit.analysis.rollout import rollout
from minivit.analysis.running import batches, rows_and_columns
from minivit.figures.overlay import numbers, overlay


def attention_overlay(
    model: nn.Module,
    image: Tensor,
    *,
    block: int = -1,
    query: Grid | None = None,
    grid: Grid | None = None,
) -> Figure:
    """Draws what each head of a block attends to, over the picture::

        attention_overlay(model, image, block=3)

    Every head has its own scale of colours; its largest weight stands above it.

    Args:
        model: As for :func:`~minivit.analysis.distance.attention_distance`.
        image: The model's input, ``[channels, height, width]`` or a batch of one.
        block: Which of the blocks that have attention. Default: the last.
        query: Row and column of the patch that attends; it is framed. Default: the first token, if
            that is no patch, or else the mean of all patches.
        grid: As for :func:`~minivit.analysis.distance.attention_distance`.

    Raises:
        IndexError: There is no such block.
        ValueError: More than one picture, one that is not finite, no such patch, or as for
            :func:`~minivit.analysis.distance.attention_distance`.
    """
    images = _one(image)
    found = layouts(model, images, grid)
    if not -len(found) <= block < len(found):
        raise IndexError(f"expected one of {len(found)} blocks: got block={block}")
    at = found[block]
    ((weights,),) = attention_weights(model, [images], [at])  # [1, heads, tokens, tokens]
    (rows, columns), index = at.grid, None
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
    model: nn.Module, image: Tensor, *, identity: float = 0.5, grid: Grid | None = None
) -> Figure:
    """Draws how much the answer has of each patch after every block, by rollout, over the picture.

    Args:
        model: As for :func:`~minivit.analysis.distance.attention_distance`.
        image: The model's input, ``[channels, height, width]`` or a batch of one.
        identity: As for :func:`~minivit.analysis.rollout.rollout`. Default: 0.5.
        grid: As for :func:`~minivit.analysis.distance.attention_distance`.

    Raises:
        ValueError: More than one picture, one that is not finite, or as for
            :func:`~minivit.analysis.rollout.rollout`.
    """
    images = _one(image)
    found = rollout(model, images, identity=identity, grid=grid)
    patches = found.patches[:, 0]  # [blocks, patches]
    titles = [f"block {i}: {row.max():.2f}" for i, row in enumerate(patches)]
    return _panels(images[0], patches, found.grid, titles)


def _one(image: Tensor) -> Tensor:
    """A batch of one picture, ``[1, channels, height, width]``."""
    images = image[None] if image.ndim == 3 else image
    if images.ndim != 4 or len(images) != 1:
        raise ValueError(f"expected one picture [channels, height, width]: got {list(image.shape)}")
    _, checked = batches(images, 1)
    return next(checked)


def _panels(
    image: Tensor, values: Tensor, grid: Grid, titles: list[str], query: int | None = None
) -> Figure:
    """One picture for each row of values, at most six in a line."""
    image = numbers(image, "a finite picture")
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
