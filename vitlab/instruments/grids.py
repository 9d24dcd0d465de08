"""The grids of a model's feature maps, and where their positions lie in the image."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import index
from typing import Any

from torch import Tensor, nn

from minivit.hooks import after
from minivit.patches import pair
from minivit.shapes import Grid as Grid
from vitlab.instruments.running import entered, expect

Centres = tuple[tuple[float, float], ...]  # along each axis the first position's centre, the step


def rows_and_columns(grid: Iterable[int]) -> Grid:
    """A grid as two whole numbers, or a ValueError."""
    rows, columns = map(index, grid)
    expect(min(rows, columns) > 0, "grid=(rows, columns), each 1 or more", grid)
    return rows, columns


@contextmanager
def maps_of(model: nn.Module) -> Iterator[list[Grid]]:
    """Collects the rows and columns of every convolution's output, in the order they run."""
    maps: list[Grid] = []

    def keep(module: nn.Module, args: Any, output: Tensor) -> None:
        maps.append((output.shape[-2], output.shape[-1]))

    with entered(after(m, keep) for m in model.modules() if isinstance(m, nn.Conv2d)):
        yield maps


@contextmanager
def centres_of(model: nn.Module, size: Grid) -> Iterator[Callable[[Grid], Centres]]:
    """Follows the positions of feature maps through convolutions and pools, by the maps' sizes.

    A position's centre is that of the window its filter reads. Maps of one size are aligned.
    """
    known: dict[Grid, Centres] = {size: ((0.5, 1.0), (0.5, 1.0))}

    def keep(module: Any, args: Any, output: Tensor) -> None:
        before, after = ((t.shape[-2], t.shape[-1]) for t in (args[0], output))
        if len(known) == 1 and before not in known:
            strides = zip(size, before, pair(module.stride), strict=True)
            if all(to == -(-side // stride) * stride for side, to, stride in strides):
                known[before] = known[size]  # padded to whole strides, below and to the right
        if after in known or before not in known:
            return
        padding = 0 if module.padding == "valid" else module.padding
        settings = map(pair, (module.kernel_size, module.stride, padding))
        known[after] = tuple(
            (start + step * ((kernel - 1) / 2 - padded), step * stride)
            for (start, step), kernel, stride, padded in zip(known[before], *settings, strict=True)
        )

    def centres(grid: Grid) -> Centres:
        """Where nothing is known, as after adaptive pooling: the centres of equal cells."""
        cells = [side / count for side, count in zip(size, grid, strict=True)]
        return known.get(grid, tuple((cell / 2, cell) for cell in cells))

    kinds = nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d
    with entered(after(m, keep) for m in model.modules() if isinstance(m, kinds)):
        yield centres
