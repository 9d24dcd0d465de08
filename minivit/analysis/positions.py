"""What a model has learned about where its patches stand: the geometry in a table of positions."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from minivit.analysis.dct import dct2
from minivit.analysis.layout import Grid
from minivit.analysis.representations import EXTRA
from minivit.analysis.ridge import explained, ridge
from minivit.analysis.running import rows_and_columns


def position_table(model: nn.Module, grid: Grid | None = None) -> Tensor:
    """Finds the vectors that a model adds to its patches, and lays them out on their grid.

    Args:
        model: minivit's, torchvision's, timm's, Hugging Face's, or any other with one tensor of
            positions for all tokens, parameter or buffer, whose name has "pos" in it.
        grid: Rows and columns of patches. Default: what the model says of itself, if it is
            minivit's; otherwise the largest square, behind up to eight other tokens.

    Returns:
        ``[rows, columns, dim]``, a copy without gradients; class token and registers are left out.

    Raises:
        ValueError: There is no such table or more than one, or it does not fit the grid.
    """
    learned, fixed = (
        {
            name: t.detach().clone().flatten(0, -2)
            for name, t in tensors
            if re.search("pos(?!t)", name.lower()) and t.is_floating_point() and t.ndim in (2, 3)
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
        grid = getattr(owner, "grid", (side, side))
    grid = rows_and_columns(grid)
    extra = len(table) - grid[0] * grid[1]
    if not 0 <= extra <= EXTRA:
        raise ValueError(
            f"{name!r} has {len(table)} positions, which are no {grid[0]} x {grid[1]} patches with "
            f"up to {EXTRA} tokens before them: give grid=(rows, columns)"
        )
    return table[extra:].unflatten(0, grid)


@dataclass(frozen=True, eq=False)
class PositionSimilarity:
    """The cosine of every position's vector with every other's."""

    cosines: Tensor  # [rows, columns, rows, columns], float64

    def _mean(self, same_row: bool, same_column: bool) -> float:
        rows, columns = self.cosines.shape[:2]
        row, column = (torch.eye(n, dtype=torch.bool) for n in (rows, columns))
        row, column = row if same_row else ~row, column if same_column else ~column
        chosen = row[:, None, :, None] & column[None, :, None, :]
        return self.cosines.cpu()[chosen.expand(self.cosines.shape)].mean().item()

    @property
    def same_row(self) -> float:
        """The mean over pairs of different places in one row."""
        return self._mean(True, False)

    @property
    def same_column(self) -> float:
        """The mean over pairs of different places in one column."""
        return self._mean(False, True)

    @property
    def elsewhere(self) -> float:
        """The mean over pairs that share neither."""
        return self._mean(False, False)

    def by_distance(self) -> tuple[Tensor, Tensor]:
        """The mean over all pairs at each distance.

        Returns:
            The distances that occur, in patches, ascending from 0, and the mean cosine at each.
        """
        shape = self.cosines.shape[:2]
        places = torch.cartesian_prod(*(torch.arange(n, dtype=torch.float64) for n in shape))
        squares = (places[:, None] - places).square().sum(-1).flatten()
        distances, which = squares.unique(return_inverse=True)
        sums = torch.zeros(len(distances), dtype=torch.float64)
        sums.index_add_(0, which, self.cosines.cpu().flatten())
        return distances.sqrt(), sums / which.bincount()


def position_similarity(table: Tensor) -> PositionSimilarity:
    """Compares every place's vector with every other's, as Dosovitskiy et al. (2021), figure 7.

    Args:
        table: ``[rows, columns, dim]``, such as :func:`position_table` gives.

    Raises:
        ValueError: Another shape, fewer than two rows or columns, numbers that are not finite, or a
            place whose vector is zero.
    """
    flat = _checked(table).flatten(0, 1)
    lengths = flat.norm(dim=1, keepdim=True)
    if not lengths.all():
        raise ValueError("a place has the vector zero, which has no direction to compare")
    unit = flat / lengths
    grid = table.shape[:2]
    return PositionSimilarity((unit @ unit.mT).view(*grid, *grid))


def place_recovery(table: Tensor) -> tuple[float, float]:
    """How well a linear map can tell row and column from the vector of a place that it never saw.

    Ridge regression is fitted to all places but one and asked for that one, each in turn. Fitted to
    all of them it would be perfect for any table, random ones too, wherever vectors have more
    numbers than there are places.

    Args:
        table: ``[rows, columns, dim]``.

    Returns:
        ``R²`` of row and of column: 1 if exact, 0 or less if the table does not tell.

    Raises:
        ValueError: As for :func:`position_similarity`, or all vectors are the same.
    """
    flat = _checked(table).flatten(0, 1)
    rows, columns = table.shape[:2]
    where = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).to(flat)
    scores = [explained(y, ridge(flat, y).left_out).item() for y in where.split(1, dim=1)]
    return scores[0], scores[1]


def position_spectrum(table: Tensor) -> Tensor:
    """The waves that a table of positions is made of, by the cosine transform along rows, columns.

    Args:
        table: ``[rows, columns, dim]``.

    Returns:
        ``[rows, columns]``, float64, shares of the squared length that sum to 1: entry ``[u, v]``
        belongs to the wave with ``u`` half turns from top to bottom and ``v`` from left to right;
        ``[0, 0]`` to what all places have in common.

    Raises:
        ValueError: As for :func:`position_similarity`, or all vectors are zero.
    """
    power = dct2(_checked(table)).square().sum(-1)
    if not power.sum():
        raise ValueError("all vectors are zero: there are no waves in them")
    return power / power.sum()


def _checked(table: Tensor) -> Tensor:
    if table.ndim != 3 or min(table.shape[:2]) < 2 or not table.shape[2]:
        raise ValueError(
            "expected a table [rows, columns, dim] of two rows and two columns or more: got "
            f"{list(table.shape)}"
        )
    if not table.isfinite().all():
        raise ValueError("expected vectors of finite numbers: got others")
    return table.detach().double()
