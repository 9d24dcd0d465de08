"""Maps of a model, by their rows and columns, and where their places are on the picture."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from minivit.networks.patches import pair
from minivit.recording.hooks import after

Grid = tuple[int, int]  # rows and columns
Lattice = tuple[tuple[float, float], ...]  # along each axis the first place's middle, and the step


@contextmanager
def maps_of(model: nn.Module) -> Iterator[list[Grid]]:
    """Collects the rows and columns of what convolutions give, in the order in which they run."""
    found: list[Grid] = []

    def keep(module: nn.Module, args: Any, output: Tensor) -> None:
        found.append((output.shape[-2], output.shape[-1]))

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                stack.enter_context(after(module, keep))
        yield found


@contextmanager
def lattices_of(model: nn.Module, size: Grid) -> Iterator[Callable[[Grid], Lattice]]:
    """Follows where the places of maps are through convolutions and pools; gives it by their size.

    A place is in the middle of what its filter reads. Maps of one size are taken to lie alike, as
    they do at both ends of a shortcut.
    """
    found: dict[Grid, Lattice] = {size: ((0.5, 1.0), (0.5, 1.0))}

    def keep(module: Any, args: Any, output: Tensor) -> None:
        before, after = ((t.shape[-2], t.shape[-1]) for t in (args[0], output))
        if len(found) == 1 and before not in found and _padded(size, before, pair(module.stride)):
            found[before] = found[size]
        if after in found or before not in found:
            return
        padding = 0 if module.padding == "valid" else module.padding
        settings = map(pair, (module.kernel_size, module.stride, padding))
        found[after] = tuple(
            (start + step * ((kernel - 1) / 2 - padded), step * stride)
            for (start, step), kernel, stride, padded in zip(found[before], *settings, strict=True)
        )

    def lattice(grid: Grid) -> Lattice:
        """Where nothing is known, as of an adaptive pool's map, the middles of equal cells."""
        cells = [side / count for side, count in zip(size, grid, strict=True)]
        return found.get(grid, tuple((cell / 2, cell) for cell in cells))

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d):
                stack.enter_context(after(module, keep))
        yield lattice


def _padded(size: Grid, to: Grid, stride: Grid) -> bool:
    """Whether a picture of this size was filled up to whole strides, below and to the right."""
    return all(t == -(-n // s) * s for n, t, s in zip(size, to, stride, strict=True))
