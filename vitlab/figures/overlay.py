"""Heat maps over an image, with a value for each patch."""

import numpy as np
import torch
from jaxtyping import Float, Float64
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from vitlab.instruments.grids import Grid
from vitlab.instruments.running import expect


def numbers(x: Tensor, what: str) -> Tensor:
    """A tensor to draw: detached, on the CPU, in float32 or wider; ValueError if not finite."""
    x = x.detach().cpu().to(torch.promote_types(x.dtype, torch.float32))
    bad = int((~x.isfinite()).sum())
    expect(not bad, what, f"{bad} of {x.numel()} that are not")
    return x


def heat(values: Tensor, grid: Grid, picture_size: Grid) -> Float64[np.ndarray, "height width"]:
    """Spreads one value per patch, in reading order, over the pixels of its patch."""
    rows, columns = grid
    height, width = picture_size
    fits = values.numel() == rows * columns and not height % rows and not width % columns
    got = f"{values.numel()} values and {height} x {width} pixels"
    expect(fits, f"a value for each patch of a grid {rows} x {columns} that divides it", got)
    patch = np.ones((height // rows, width // columns))
    return np.kron(numbers(values, "finite values").double().reshape(rows, columns).numpy(), patch)


def overlay(
    ax: Axes,
    picture: Float[Tensor, "channels height width"],
    values: Tensor,
    grid: Grid,
    *,
    query: int | None = None,
    vmax: float | None = None,
) -> None:
    """Draws an image in grey with one value per patch in colour over it, opaque where it is large.

    Pixels are from 0 to 1. ``query`` is the index of a patch to frame, ``vmax`` the value with the
    strongest colour, by default the largest.
    """
    height, width = picture.shape[-2:]
    grey = numbers(picture, "a finite image").mean(0)
    ax.imshow(grey.numpy(), cmap="gray", vmin=0, vmax=1)
    strongest = values.max().item() if vmax is None else vmax
    fractions = heat(values, grid, (height, width)) / (strongest or 1)
    # Where a patch has a small value, the image shows through.
    ax.imshow(fractions, cmap="magma", alpha=(0.9 * fractions).clip(0, 0.9), vmin=0, vmax=1)
    if query is not None:
        row, column = divmod(query, grid[1])
        size = (width // grid[1], height // grid[0])
        corner = (column * size[0] - 0.5, row * size[1] - 0.5)
        ax.add_patch(Rectangle(corner, *size, fill=False, edgecolor="cyan", linewidth=1.6))
    ax.set_axis_off()
