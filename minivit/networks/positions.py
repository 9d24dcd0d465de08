"""Where a token stands: no positions, learned ones, sines and cosines, on any grid of patches.

Attention does not see the order of its tokens, so a vector for each place is added to them.
"""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn


def sincos_1d(length: int, dim: int) -> Tensor:
    r"""Sines and cosines of one coordinate, after Vaswani et al. (2017), section 3.5.

    .. math:: P_{t,2i} = \sin(t / 10000^{2i/d}), \qquad P_{t,2i+1} = \cos(t / 10000^{2i/d})

    Args:
        length: Number of places, counted from 0.
        dim: Width of a token, even.

    Returns:
        ``[length, dim]``, float32.

    Raises:
        ValueError: ``dim`` is odd.
    """
    if dim % 2:
        raise ValueError(f"sines and cosines come in pairs, so dim must be even: got dim={dim}")
    # In float64: the angle of a far place would lose digits before its sine is taken.
    rates = 10000.0 ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)  # [dim / 2]
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates  # [length, dim / 2]
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


def sincos_2d(grid: tuple[int, int], dim: int) -> Tensor:
    """The row in the first half of a token, the column in the second, each by :func:`sincos_1d`.

    The form used by Chen et al. (2021), "An Empirical Study of Training Self-Supervised Vision
    Transformers", and by He et al. (2022), "Masked Autoencoders", up to the order of the entries.

    Args:
        grid: Rows and columns of patches.
        dim: Width of a token, divisible by 4.

    Returns:
        ``[rows * columns, dim]``, float32, in reading order.

    Raises:
        ValueError: ``dim`` is not divisible by 4.
    """
    if dim % 4:
        raise ValueError(f"two coordinates need a dim divisible by 4: got dim={dim}")
    rows, columns = (sincos_1d(length, dim // 2) for length in grid)
    halves = rows[:, None].expand(-1, grid[1], -1), columns.expand(grid[0], -1, -1)
    return torch.cat(halves, -1).flatten(0, 1)  # [rows, columns, dim] -> [rows * columns, dim]


def resample(positions: Tensor, old_grid: tuple[int, int], new_grid: tuple[int, int]) -> Tensor:
    """Stretches a table of positions to another grid, by bicubic interpolation.

    The corners stay where they are, as in torchvision's ``interpolate_embeddings``. A class token
    has no place on the grid: a row more than the grid has patches is one, and is kept as it is.

    Args:
        positions: ``[rows * columns, dim]`` or ``[1 + rows * columns, dim]``.
        old_grid: Rows and columns that the table was made for.
        new_grid: Rows and columns wanted.

    Returns:
        ``[new rows * new columns, dim]``, or one row more; the table itself where nothing changes.

    Raises:
        ValueError: The table does not fit the old grid.
    """
    rows, columns = old_grid
    extra = len(positions) - rows * columns
    if positions.ndim != 2 or extra not in (0, 1):
        raise ValueError(
            f"positions for a grid of {rows} x {columns} must be [{rows * columns}, dim], or with "
            f"a class token [{rows * columns + 1}, dim]: got {list(positions.shape)}"
        )
    if old_grid == new_grid:
        return positions
    table = rearrange(positions[extra:], "(r c) d -> 1 d r c", r=rows)
    table = F.interpolate(table, new_grid, mode="bicubic", align_corners=True)
    return torch.cat([positions[:extra], rearrange(table, "1 d r c -> (r c) d")])


class Positions(nn.Module):
    """Adds to every token a vector that says where it stands.

    Args:
        kind: ``"none"``; ``"learned"``, drawn from N(0, 0.02) at first; ``"sincos1d"``, of the
            place in reading order; ``"sincos2d"``, of row and column.
        grid: Rows and columns of patches that the table is made for; for others it is resampled.
        dim: Width of a token.
        class_token: Whether a class token stands before the patches. Its row is learned with the
            others, and zero where the table is fixed. Default: true.

    Raises:
        ValueError: An unknown kind, or a ``dim`` that does not suit it.
    """

    def __init__(
        self, kind: str, grid: tuple[int, int], dim: int, class_token: bool = True
    ) -> None:
        super().__init__()
        self.grid, patches = grid, grid[0] * grid[1]
        self.table: Tensor | None  # [tokens, dim]
        if kind == "none":
            self.table = None
        elif kind == "learned":
            self.table = nn.Parameter(torch.empty(class_token + patches, dim))
            nn.init.normal_(self.table, std=0.02)
        elif kind in ("sincos1d", "sincos2d"):
            fixed = sincos_1d(patches, dim) if kind == "sincos1d" else sincos_2d(grid, dim)
            self.register_buffer("table", F.pad(fixed, (0, 0, int(class_token), 0)))
        else:
            raise ValueError(f"positions are none, learned, sincos1d or sincos2d: got {kind!r}")

    def forward(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """Adds positions to tokens ``[batch, tokens, dim]`` whose patches form this grid."""
        if self.table is None:
            return tokens
        return tokens + resample(self.table, self.grid, grid)
