"""The geometry in a table of position embeddings: what a model has learned about positions."""

import re
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from minivit.patches import pair
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.representations import EXTRA
from vitlab.instruments.ridge import explained, ridge

Table = Float[Tensor, "rows columns dim"]


def position_table(model: nn.Module, grid: Grid | None = None) -> Table:
    """A copy of a model's position embeddings, laid out on the grid of patches.

    Class token and registers are left out. It works for any model with a single tensor of positions
    for all tokens, parameter or buffer, whose name contains "pos". Rotations (RoPE) are none.

    Args:
        grid: Rows and columns of patches. Default: those that the model's own modules name, as do
            minivit's, timm's, torchvision's and Hugging Face's; otherwise the largest square, after
            up to eight other tokens.

    Raises:
        ValueError: There is no such table or more than one, or it does not fit the grid.
    """
    learned, fixed = (
        {
            name: t.detach().clone().flatten(0, -2)
            for name, t in tensors
            if re.search("^(?!.*rope).*pos(?!t)", name.lower())
            and t.is_floating_point()
            and t.ndim in (2, 3)
        }
        for tensors in (model.named_parameters(), model.named_buffers())
    )
    found = learned or fixed  # a model with a table may have its rotations in a buffer
    if len(found) != 1:
        raise ValueError(
            f"expected one table of positions in {type(model).__name__}: got "
            f"{', '.join(found) or 'none'}"
        )
    ((name, table),) = found.items()
    if grid is None:
        owner = model.get_submodule(name.rpartition(".")[0])
        side = int(len(table) ** 0.5)
        named = {one for module in model.modules() if (one := _named_grid(module))}
        grid = getattr(owner, "grid", named.pop() if len(named) == 1 else (side, side))
    grid = rows_and_columns(grid)
    extra = len(table) - grid[0] * grid[1]
    if not 0 <= extra <= EXTRA:
        raise ValueError(
            f"{name!r} has {len(table)} positions, which are no {grid[0]} x {grid[1]} patches with "
            f"up to {EXTRA} tokens before them: give grid=(rows, columns)"
        )
    return table[extra:].unflatten(0, grid)


def _named_grid(module: nn.Module) -> Grid | None:
    """Rows and columns of patches, where a module says ``grid_size``, or its image and patch."""
    named = getattr(module, "grid_size", None)
    if isinstance(named, tuple) and len(named) == 2:
        return rows_and_columns(named)
    sizes: list[Any] = [getattr(module, name, None) for name in ("image_size", "patch_size")]
    sizes = [tuple(size) if isinstance(size, list) else size for size in sizes]
    try:
        (height, width), (down, across) = (rows_and_columns(pair(size)) for size in sizes)
    except (TypeError, ValueError):
        return None
    return height // down, width // across


@dataclass(frozen=True, eq=False)
class PositionSimilarity:
    """The cosine similarity of every position's vector with every other's."""

    cosines: Float64[Tensor, "rows columns rows columns"]

    def _mean(self, same_row: bool, same_column: bool) -> float:
        rows, columns = self.cosines.shape[:2]
        row = torch.eye(rows, dtype=torch.bool) == same_row
        column = torch.eye(columns, dtype=torch.bool) == same_column
        chosen = row[:, None, :, None] & column[None, :, None, :]
        return self.cosines.cpu()[chosen.expand(self.cosines.shape)].mean().item()

    @property
    def same_row(self) -> float:
        """The mean over pairs of different positions in one row."""
        return self._mean(True, False)

    @property
    def same_column(self) -> float:
        """The mean over pairs of different positions in one column."""
        return self._mean(False, True)

    @property
    def elsewhere(self) -> float:
        """The mean over pairs in different rows and columns."""
        return self._mean(False, False)

    def by_distance(self) -> tuple[Float64[Tensor, "distances"], Float64[Tensor, "distances"]]:
        """The distances that occur, in patches, ascending from 0, and the mean cosine at each."""
        shape = self.cosines.shape[:2]
        positions = torch.cartesian_prod(*(torch.arange(n, dtype=torch.float64) for n in shape))
        squares = (positions[:, None] - positions).square().sum(-1).flatten()
        distances, which = squares.unique(return_inverse=True)
        sums = torch.zeros(len(distances), dtype=torch.float64)
        sums.index_add_(0, which, self.cosines.cpu().flatten())
        return distances.sqrt(), sums / which.bincount()


def position_similarity(table: Table) -> PositionSimilarity:
    """Compares every position's vector with every other's, as Dosovitskiy et al. (2021), fig. 7."""
    flat = _checked(table).flatten(0, 1)
    lengths = flat.norm(dim=1, keepdim=True)
    if not lengths.all():
        raise ValueError("a position has the vector zero, which has no direction to compare")
    unit = flat / lengths
    grid = table.shape[:2]
    return PositionSimilarity((unit @ unit.mT).view(*grid, *grid))


def place_recovery(table: Table) -> tuple[float, float]:
    """How well a linear map predicts row and column from a position's vector: ``R²`` of each.

    Ridge regression is fitted to all positions but one and tested on that one, each in turn. Fitted
    to all of them it would be perfect even for random tables, wherever vectors have more dimensions
    than there are positions.
    """
    flat = _checked(table).flatten(0, 1)
    rows, columns = table.shape[:2]
    where = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).to(flat)
    scores = [explained(y, ridge(flat, y).left_out).item() for y in where.split(1, dim=1)]
    return scores[0], scores[1]


def _checked(table: Tensor) -> Float64[Tensor, "rows columns dim"]:
    if table.ndim != 3 or min(table.shape[:2]) < 2 or not table.shape[2]:
        raise ValueError(
            "expected a table [rows, columns, dim] of two rows and two columns or more: got "
            f"{list(table.shape)}"
        )
    if not table.isfinite().all():
        raise ValueError("expected vectors of finite numbers: got others")
    return table.detach().double()
