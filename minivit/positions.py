"""Vectors for the positions of tokens: sines and cosines, and tables stretched to other grids.

Attention does not see the order of its tokens, so a vector for its position is added to each.
"""

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from minivit.shapes import Grid, Table, Tokens


def sincos_1d(length: int, dim: int) -> Float[Tensor, "length dim"]:
    r"""Sines and cosines of one coordinate, after Vaswani et al. (2017), section 3.5.

    .. math:: P_{t,2i} = \sin(t / 10000^{2i/d}), \qquad P_{t,2i+1} = \cos(t / 10000^{2i/d})
    """
    if dim % 2:
        raise ValueError(f"sines and cosines come in pairs, so dim must be even: got dim={dim}")
    # In float64: the angle of a far position would lose digits before its sine is taken.
    rates = 10000.0 ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)  # [dim / 2]
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates  # [length, dim / 2]
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


def sincos_2d(grid: Grid, dim: int) -> Table:
    """The row in the first half of a token, the column in the second, each by :func:`sincos_1d`.

    The form used by Chen et al. (2021), "An Empirical Study of Training Self-Supervised Vision
    Transformers", and by He et al. (2022), "Masked Autoencoders", up to the order of the entries.
    """
    if dim % 4:
        raise ValueError(f"two coordinates need a dim divisible by 4: got dim={dim}")
    rows = sincos_1d(grid[0], dim // 2)[:, None].expand(-1, grid[1], -1)
    columns = sincos_1d(grid[1], dim // 2).expand(grid[0], -1, -1)
    return torch.cat([rows, columns], -1).flatten(0, 1)  # in reading order


def resample(positions: Table, old_grid: Grid, new_grid: Grid) -> Float[Tensor, "new_tokens dim"]:
    """Stretches a table of positions to another grid, by bicubic interpolation.

    The corners stay where they are, as in torchvision's ``interpolate_embeddings``. An extra first
    row belongs to the class token and is kept. If the grids are equal, the table is returned.
    """
    rows, columns = old_grid
    extra = len(positions) - rows * columns
    if positions.ndim != 2 or extra not in (0, 1):
        expected = f"positions [{rows * columns}, dim], or one more for a class token"
        raise ValueError(f"expected {expected}: got {list(positions.shape)}")
    if old_grid == new_grid:
        return positions
    table = rearrange(positions[extra:], "(r c) d -> 1 d r c", r=rows)
    table = F.interpolate(table, new_grid, mode="bicubic", align_corners=True)
    return torch.cat([positions[:extra], rearrange(table, "1 d r c -> (r c) d")])


class FixedPositions(nn.Module):
    """Adds sines and cosines of every patch's position; a class token gets zeros."""

    table: Tensor

    def __init__(self, encoding: Table, grid: Grid, class_token: bool = True) -> None:
        super().__init__()
        self.grid = grid
        self.register_buffer("table", F.pad(encoding, (0, 0, int(class_token), 0)))

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        return x + resample(self.table, self.grid, grid)


class NoPositions(nn.Module):
    """Adds nothing."""

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        return x
