"""Images of a data set, class by class."""

from collections.abc import Sequence

import torch
from jaxtyping import Integer, Shaped
from matplotlib.axes import Axes
from torch import Tensor


def gallery(
    ax: Axes,
    images: Shaped[Tensor, "batch channels height width"],
    labels: Integer[Tensor, "batch"],
    classes: Sequence[str],
    *,
    columns: int = 8,
) -> None:
    """Draws the first images of each class in a row after its name.

    Images have 1 or 3 channels and are uint8, or from 0 to 1. Labels are indices of ``classes``.
    A class without images has no row.
    """
    if not len(images) or len(labels) != len(images):
        got = f"{list(images.shape)} and {len(labels)} labels"
        raise ValueError(f"expected images [n, channels, height, width] and n labels: got {got}")
    height, width = images.shape[-2:]
    gap = max(1, width // 16)
    shown = sorted(set(labels.tolist()))
    down = height + gap
    across = width + gap
    sheet = torch.ones(len(shown) * down - gap, columns * across - gap, 3)
    pixels = images / 255 if images.dtype == torch.uint8 else images
    for row, label in enumerate(shown):
        for column, picture in enumerate(pixels[labels == label][:columns]):
            y = row * down
            x = column * across
            sheet[y : y + height, x : x + width] = picture.permute(1, 2, 0)
    ax.imshow(sheet.numpy(), interpolation="nearest")
    ax.set_xticks([])
    middles = [row * down + height / 2 for row in range(len(shown))]
    ax.set_yticks(middles, [classes[label] for label in shown])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
