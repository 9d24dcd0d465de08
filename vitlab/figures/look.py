"""One image and where a model looks in it: what `minivit look` saves."""

from typing import Any

import matplotlib.style
from jaxtyping import Float, Shaped
from matplotlib.figure import Figure
from torch import Tensor, nn

from vitlab.figures.attention import heads_read, one_image, scaled
from vitlab.figures.overlay import overlay
from vitlab.instruments.grids import Grid
from vitlab.instruments.layout import layouts
from vitlab.instruments.rollout import rollout


def look(
    model: nn.Module,
    image: Shaped[Tensor, "channels height width"] | Shaped[Tensor, "1 channels height width"],
    *,
    picture: Float[Tensor, "channels height2 width2"] | None = None,
    block: int = -1,
    title: str = "",
    grid: Grid | None = None,
) -> Figure:
    """Draws an image, attention rollout over it, and each head of a block.

    Every panel has its own colour scale; its largest value is in its title.

    Args:
        image: As the model reads it.
        picture: The same view with more pixels, from 0 to 1, a multiple of the image's. Default:
            the image, scaled to its range.
        block: Index among the blocks with attention. Default: the last.
        title: Of the whole figure.
        grid: As for :func:`~vitlab.instruments.distance.attention_distance`.

    Raises:
        ValueError: There is no attention between the tokens of patches to draw.
        IndexError: There is no such block.
    """
    images = one_image(image)
    at, heads = heads_read(model, images, layouts(model, images, grid), block)
    carried = rollout(model, images, grid=grid)
    shown = scaled(images[0]) if picture is None else picture
    across = min(len(heads), 6)
    down = -(-len(heads) // across)
    shape = shown.shape[1] / shown.shape[2]
    width = 1.65 * max(across, 4)
    top, low = 0.42 * width * shape, width / max(across, 4) * shape + 0.3
    with matplotlib.style.context("vitlab.figures.book"):
        figure = Figure(figsize=(width, top + low * down + 1.1), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=[top + 0.7, low * down + 0.4])
        above, below = parts
        plain = title.encode("utf-8", "backslashreplace").decode()
        figure.suptitle(plain, parse_math=False)  # a file's name may have dollars
        whole, rolled = above.subplots(1, 2)
        colours = shown.expand(3, -1, -1) if len(shown) == 1 else shown[:3]
        whole.imshow(colours.permute(1, 2, 0).clamp(0, 1).numpy())
        whole.set_title("the image", fontsize="small")
        whole.set_axis_off()
        patches = carried.patches[-1, 0]
        overlay(rolled, shown, patches, carried.grid)
        rolled.set_title(f"rollout of all blocks: {patches.max():.2f}", fontsize="small")
        below.suptitle(f"heads of {at.name}", fontsize="small")
        axes = list(below.subplots(down, max(across, 4), squeeze=False).flat)
        for ax in axes:
            ax.set_axis_off()
        for i, (ax, row) in enumerate(zip(axes, heads, strict=False)):
            overlay(ax, shown, row, at.grid)
            ax.set_title(f"head {i}: {row.max():.2f}", fontsize="x-small")
    return figure
