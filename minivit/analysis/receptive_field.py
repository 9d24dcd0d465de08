"""Which pixels one place in a model depends on, and how much: the effective receptive field."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from minivit.analysis.lattice import Grid, Lattice, lattices_of, maps_of
from minivit.analysis.layout import outside
from minivit.analysis.running import batches, evaluating, leaf, rows_and_columns
from minivit.recording.hooks import after
from minivit.recording.names import one
from minivit.recording.recorder import tensors_in


@dataclass(frozen=True, eq=False)
class ReceptiveField:
    """What :func:`receptive_field` finds: how much each pixel matters to one place."""

    sensitivity: Tensor  # [height, width], mean |d activation / d pixel|, at least 0
    place: Grid  # row and column of the place
    grid: Grid  # rows and columns of places
    middle: tuple[float, ...]  # of the place, in pixels from the upper left corner

    @property
    def support(self) -> Tensor:
        """Pixels that matter at all, boolean ``[height, width]``."""
        return self.sensitivity > 0

    @property
    def extent(self) -> tuple[int, int]:
        """Height and width in pixels of the smallest rectangle around the support."""
        lengths = []
        for axis in (1, 0):
            hit = self.support.any(axis).nonzero()
            lengths.append(int(hit[-1] - hit[0]) + 1 if len(hit) else 0)
        return lengths[0], lengths[1]

    def area(self, share: float = 0.0455) -> int:
        """Counts the pixels whose sensitivity is above a share of the largest.

        Args:
            share: Default: 0.0455, as Luo et al. (2016) take of the sensitivity in the middle.
        """
        return int((self.sensitivity > share * self.sensitivity.max()).sum())

    @property
    def spread(self) -> tuple[float, float]:
        """Standard deviation of the sensitivity along height and width, in pixels."""
        deviations = []
        for axis in (1, 0):
            weight = self.sensitivity.sum(axis) / self.sensitivity.sum()
            at = torch.arange(len(weight), dtype=weight.dtype)
            mean = (weight * at).sum()
            deviations.append((weight * (at - mean).square()).sum().sqrt().item())
        return deviations[0], deviations[1]

    @property
    def distance(self) -> float:
        """Mean distance of the pixels from the middle of the place, weighted by sensitivity.

        In pixels: what an attention distance would be, if attention were all that carries
        information.
        """
        sides = zip(self.sensitivity.shape, self.middle, strict=True)
        y, x = (torch.arange(side, dtype=torch.float64) + 0.5 - middle for side, middle in sides)
        far = torch.hypot(y[:, None], x)  # [height, width]
        return ((far * self.sensitivity).sum() / self.sensitivity.sum()).item()


@torch.inference_mode(False)  # in which nothing has a gradient
def receptive_field(
    model: nn.Module,
    images: Tensor | Iterable[Tensor],
    at: str,
    *,
    place: Grid | None = None,
    channels: int = 64,
    batch_size: int = 8,
) -> ReceptiveField:
    r"""Measures the effective receptive field of one place, after Luo et al. (2016).

    The sensitivity to a pixel :math:`p` is the mean of :math:`|\partial y_c / \partial x_p|` over
    the channels :math:`c` of the place's activation :math:`y`, over the colours of the pixel and
    over pictures. Where it is zero for all pictures, the pixel is outside the receptive field; how
    much it matters inside is another question, and the reason for *effective*. Taking the absolute
    value of every channel alone, no two cancel.

    Args:
        model: Any module. It is used in its mode of evaluation, and comes back as it was.
        images: The model's input, ``[n, channels, height, width]``, or batches of such, all of one
            size.
        at: The name of a module, such as ``"blocks.3"``, that gives tokens
            ``[batch, tokens, dim]`` or a map ``[batch, dim, rows, columns]``. The grid of tokens is
            that of the last convolution before, as a rule the patch embedding, beside tokens that
            come from no patch.
        place: Row and column on its grid. Default: the middle, ``(rows // 2, columns // 2)``.
        channels: How many channels of the place at most: a backward pass for each. Where there are
            more, they are drawn at random, the same every time. Default: 64.
        batch_size: Images at a time, where they are not in batches already. Default: 8.

    Returns:
        Float64 on the CPU.

    Raises:
        LookupError: No module has this name; the message lists near ones.
        TypeError: Images without floating numbers.
        ValueError: Several have; no images, or of several sizes, or not finite; no channels; the
            module gives neither tokens on a grid nor a map; or there is no such place.
    """
    if channels < 1:
        raise ValueError(f"expected at least one channel: got {channels}")
    place = None if place is None else rows_and_columns(place, "place")
    first, stream = batches(images, batch_size)
    total = torch.zeros(first.shape[2:], dtype=torch.float64)
    count = 0
    for batch in stream:
        x = leaf(batch)
        with evaluating(model), torch.enable_grad():
            activation, grid, lattice = _activation(model, x, at)
        row, column = place or (grid[0] // 2, grid[1] // 2)
        if not (0 <= row < grid[0] and 0 <= column < grid[1]):
            raise ValueError(f"{at!r} has {grid[0]} x {grid[1]} places: got {place}")
        y = activation[:, :, row, column]  # [batch, dim]
        drawn = torch.randperm(y.shape[1], generator=torch.Generator().manual_seed(0))[:channels]
        for channel in drawn.tolist():
            (gradient,) = torch.autograd.grad(y[:, channel].sum(), x, retain_graph=True)
            total += gradient.double().abs().mean(1).sum(0).cpu()
            count += len(batch)
    middle = tuple(
        start + step * i for (start, step), i in zip(lattice, (row, column), strict=True)
    )
    return ReceptiveField(total / count, (row, column), grid, middle)


def _activation(model: nn.Module, x: Tensor, at: str) -> tuple[Tensor, Grid, Lattice]:
    """What a module gives, as a map ``[batch, dim, rows, columns]``, and where its places are."""
    kept: list[tuple[list[Tensor], list[Grid]]] = []
    size = (x.shape[2], x.shape[3])
    with maps_of(model) as maps, lattices_of(model, size) as lattices:

        def keep(module: nn.Module, args: object, output: object) -> None:
            # A copy: what comes next may overwrite it.
            kept.append(([t.clone() for t in tensors_in(output)], maps[-1:]))

        with after(one(model, at), keep):
            model(x)
    if not kept:
        raise ValueError(f"{at!r} never ran")
    tensors, grid = kept[-1]
    if len(tensors) == 1 and tensors[0].ndim == 4:
        rows, columns = tensors[0].shape[2:]
        return tensors[0], (rows, columns), lattices((rows, columns))
    if len(tensors) == 1 and tensors[0].ndim == 3 and grid:
        (rows, columns), tokens = grid[0], tensors[0].shape[1]
        if tokens >= rows * columns:
            count, extra = outside(model, x)
            if (count, len(extra)) != (tokens, tokens - rows * columns):
                extra = list(range(tokens - rows * columns))  # not known: the patches come last
            patches = tensors[0][:, [i for i in range(tokens) if i not in extra]]
            places = patches.mT.unflatten(2, (rows, columns))
            return places, (rows, columns), lattices((rows, columns))
    raise ValueError(
        f"expected a map, or tokens on the grid of the last convolution before, {grid}: "
        f"{at!r} gives {[list(t.shape) for t in tensors]}"
    )
