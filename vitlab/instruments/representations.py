"""What named parts of a model give for images, and where in the image it is."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from minivit.recording import record
from vitlab.instruments.grids import Grid, maps_of, rows_and_columns
from vitlab.instruments.layout import outside
from vitlab.instruments.running import Images, batches, evaluating, expect

EXTRA = 8  # tokens besides the patches, at most, where nothing else is known


def representations(
    model: nn.Module, images: Shaped[Tensor, "batch ..."], names: tuple[str, ...]
) -> dict[str, Float[Tensor, "batch ..."]]:
    """The outputs of named modules, without gradients; tokens that come from no patch are first."""
    with record(model, *names, detach=True) as seen, evaluating(model):
        model(images)
    for name, x in seen.items():
        floating = isinstance(x, Tensor) and x.is_floating_point()
        got = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        fits = floating and x.shape[:1] == images.shape[:1]
        expect(fits, f"{name!r} to give one floating tensor [{len(images)}, ...]", got)
    tokens, extra = outside(model, images)
    order = sorted(range(tokens), key=lambda i: i not in extra)
    for name, x in seen.items():
        if x.ndim == 3 and x.shape[1] == tokens and order != list(range(tokens)):
            seen[name] = x[:, order]
    return seen


def collected(
    model: nn.Module,
    images: Images,
    names: tuple[str, ...],
    read: Callable[[Tensor], Tensor],
    batch_size: int,
) -> dict[str, Tensor]:
    """What ``read`` makes of each named module's output, for all images, on the CPU."""
    parts: dict[str, list[Tensor]] = {}
    for batch in batches(images, batch_size)[1]:
        for name, x in representations(model, batch, names).items():
            parts.setdefault(name, []).append(read(x).cpu())
    return {name: torch.cat(rows) for name, rows in parts.items()}


class PatchGrid(tuple[int, int]):
    """Rows and columns of patches, how many tokens there may be besides, and the sizes of maps."""

    extra = EXTRA
    maps: frozenset[Grid] = frozenset()  # rows and columns of every map of the model


def patch_grid(model: nn.Module, images: Tensor) -> Grid | None:
    """Rows and columns of the model's last feature map, if it has a convolution."""
    with evaluating(model), maps_of(model) as maps:
        model(images[:1])
    if not maps:
        return None
    grid = PatchGrid(maps[-1])
    grid.extra = max(EXTRA, len(outside(model, images)[1]))
    grid.maps = frozenset([*maps, (images.shape[-2], images.shape[-1])])
    return grid


def by_position(
    x: Float[Tensor, "batch ..."], grid: Grid | None
) -> tuple[Float[Tensor, "batch extra dim"], Float[Tensor, "batch rows columns dim"]]:
    """Splits a layer's output in tokens without a position and a grid of those that have one.

    ``x`` are tokens ``[batch, tokens, dim]``, those without a position first, or a feature map
    ``[batch, dim, rows, columns]``, or, as in Swin, ``[batch, rows, columns, dim]``.
    """
    maps: frozenset[Grid] = getattr(grid, "maps", frozenset())
    if x.ndim == 4:
        first, last = tuple(x.shape[2:]), tuple(x.shape[1:3])
        if last not in (maps or {grid}) or first in (maps or {grid}):  # the first, where both fit
            got = f"{list(x.shape)}; give grid=(rows, columns)"
            expect(not maps or first in maps, f"a map of a known size, of {sorted(maps)}", got)
            x = x.movedim(1, -1)
        return x.flatten(1, 2)[:, :0], x
    shapes = "tokens [batch, tokens, dim] or a map [batch, dim, rows, columns]"
    expect(x.ndim == 3, shapes, list(x.shape))
    if grid is None:
        raise ValueError("no convolution runs in the model: give grid=(rows, columns)")
    rows, columns = rows_and_columns(grid)
    extra, most = x.shape[1] - rows * columns, getattr(grid, "extra", EXTRA)
    if not 0 <= extra <= most:
        raise ValueError(
            f"{x.shape[1]} tokens are no {rows} x {columns} patches with up to {most} tokens "
            "beside them: give grid=(rows, columns)"
        )
    return x[:, :extra], x[:, extra:].unflatten(1, (rows, columns))
