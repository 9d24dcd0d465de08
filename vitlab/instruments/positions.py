"""The geometry in a table of position embeddings: what a model has learned about positions."""

import re
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from minivit.patches import pair
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.probes import explained, ridge
from vitlab.instruments.representations import EXTRA
from vitlab.instruments.running import expect

Table = Float[Tensor, "rows columns dim"]


def position_table(model: nn.Module, grid: Grid | None = None) -> Table:
    """A copy of a model's position embeddings, on the grid of patches, without class token.

    It is the single tensor of positions, parameter or buffer, whose name contains "pos". ``grid``
    is by default the one that modules name; otherwise the largest square.
    """
    tables: dict[str, Tensor] = {}
    for tensors in model.named_parameters(), model.named_buffers():
        if tables:  # in parameters; rotations may stand in a buffer
            break
        for name, t in tensors:
            fits = t.is_floating_point() and t.ndim in (2, 3)
            if fits and re.search("^(?!.*rope).*pos(?!t)", name.lower()):
                tables[name] = t.detach().clone().flatten(0, -2)
    got = ", ".join(tables) or "none"
    expect(len(tables) == 1, f"one table of positions in {type(model).__name__}", got)
    ((name, table),) = tables.items()
    if grid is None:
        owner = model.get_submodule(name.rpartition(".")[0])
        side = int(len(table) ** 0.5)
        named = {one for module in model.modules() if (one := _named_grid(module))}
        grid = getattr(owner, "grid", named.pop() if len(named) == 1 else (side, side))
    grid = rows_and_columns(grid)
    extra = len(table) - grid[0] * grid[1]
    what = f"{grid[0]} x {grid[1]} patches with up to {EXTRA} tokens before them in {name!r}"
    got = f"{len(table)} positions; give grid=(rows, columns)"
    expect(0 <= extra <= EXTRA, what, got)
    return table[extra:].unflatten(0, grid)


def _named_grid(module: nn.Module) -> Grid | None:
    """Rows and columns of patches, where a module says ``grid_size``, or its image and patch."""
    named = getattr(module, "grid_size", None)
    if isinstance(named, tuple) and len(named) == 2:
        return rows_and_columns(named)
    sizes: list[Any] = [getattr(module, name, None) for name in ("image_size", "patch_size")]
    try:
        (height, width), (down, across) = (rows_and_columns(pair(size)) for size in sizes)
    except (TypeError, ValueError):
        return None
    return height // down, width // across


def position_similarity(table: Table) -> Float64[Tensor, "rows columns rows columns"]:
    """Cosines of every position's vector with every other's, after Dosovitskiy et al. (2021)."""
    flat = table.detach().double().flatten(0, 1)
    lengths = flat.norm(dim=1, keepdim=True)
    expect(lengths.all(), "positions with a direction to compare", "one that has the vector zero")
    unit = flat / lengths
    grid = table.shape[:2]
    return (unit @ unit.mT).view(*grid, *grid)


def place_recovery(table: Table) -> tuple[float, float]:
    """``R²`` of row and column, by ridge regression from vectors, each left out in turn."""
    flat = table.detach().double().flatten(0, 1)
    rows, columns = table.shape[:2]
    expect(min(rows, columns) > 1, "two rows and columns or more", f"{rows} and {columns}")
    where = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).to(flat)
    row, column = (explained(y, ridge(flat, y).left_out).item() for y in where.split(1, dim=1))
    return row, column
