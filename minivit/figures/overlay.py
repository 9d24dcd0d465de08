"""Heat maps over a picture, one value for each patch."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor


def numbers(x: Tensor, what: str) -> Tensor:
    """What is to be drawn, without gradients, on the CPU, in float32 or wider.

    Raises:
        ValueError: Not all of it is finite; the message calls it ``what``.
    """
    x = x.detach().cpu().to(torch.promote_types(x.dtype, torch.float32))
    if bad := int((~x.isfinite()).sum()):
        raise ValueError(f"expected {what}: got {bad} of {x.numel()} that are not")
    return x


def heat(values: Tensor, grid: tuple[int, int], picture_size: tuple[int, int]) -> np.ndarray:
    """Spreads one value per patch over the pixels of its patch.

    Args:
        values: One number per patch in reading order, ``[rows * columns]``.
        grid: Rows and columns of patches.
        picture_size: Height and width of the picture in pixels.

    Returns:
        ``[height, width]``.

    Raises:
        ValueError: The number of values is not rows x columns, the grid does not divide the
            picture, or a value is not finite.
    """
    (rows, columns), (height, width) = grid, picture_size
    if values.numel() != rows * columns:
        raise ValueError(
            f"a {rows} x {columns} grid needs {rows * columns} values: got {list(values.shape)}"
        )
    if height % rows or width % columns:
        raise ValueError(f"a {rows} x {columns} grid does not divide {height} x {width} pixels")
    patch = np.ones((height // rows, width // columns))
    shown = numbers(values, "finite values").double().reshape(rows, columns)
    return np.kron(shown.numpy(), patch)


def overlay(
    ax: Axes,
    picture: Tensor,
    values: Tensor,
    grid: tuple[int, int],
    *,
    query: int | None = None,
    vmax: float | None = None,
) -> None:
    """Draws a picture in grey with one value per patch in colour over it, opaque where it is large.

    Args:
        ax: Where to draw.
        picture: ``[3, height, width]``, from 0 to 1.
        values: One number per patch, at least 0, in reading order: ``[rows * columns]``.
        grid: Rows and columns of patches.
        query: Index of a patch to frame. Default: none.
        vmax: The value that gets the strongest colour. Default: the largest.

    Raises:
        ValueError: The picture is not finite, or as for :func:`heat`.
    """
    height, width = picture.shape[-2:]
    grey = numbers(picture, "a finite picture").mean(0)
    ax.imshow(grey.numpy(), cmap="gray", vmin=0, vmax=1)
    strongest = values.max().item() if vmax is None else vmax
    shares = heat(values, grid, (height, width)) / (strongest or 1)
    # A patch with nothing to show lets the picture through.
    ax.imshow(shares, cmap="magma", alpha=(0.9 * shares).clip(0, 0.9), vmin=0, vmax=1)
    if query is not None:
        row, column = divmod(query, grid[1])
        size = (width // grid[1], height // grid[0])
        corner = (column * size[0] - 0.5, row * size[1] - 0.5)
        ax.add_patch(Rectangle(corner, *size, fill=False, edgecolor="cyan", linewidth=1.6))
    ax.set_axis_off()
