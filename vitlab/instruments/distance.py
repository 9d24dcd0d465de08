"""How far attention looks, in pixels, and which pixels an activation depends on, and how much."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64
from torch import Tensor, nn

from vitlab.calls import activation
from vitlab.instruments.grids import Grid, centres_of
from vitlab.instruments.layout import attention_weights, layouts
from vitlab.instruments.representations import Places
from vitlab.instruments.running import Images, batches, evaluating, expect


@dataclass(frozen=True, eq=False)
class AttentionDistance:
    """Mean distances of attention, NaN where a block has fewer heads than others."""

    blocks: tuple[str, ...]  # names of the modules with attention, in the order they run
    pixels: Float64[Tensor, "blocks heads"]  # mean distance to the patches attended to
    uniform: Float64[Tensor, "blocks"]  # the same if every patch attends to all patches equally


def patch_distances(grid: Grid, size: tuple[float, float]) -> Float64[Tensor, "patches patches"]:
    """Distances between the centres of patches, which together have ``size``, height and width."""
    lengths = zip(grid, size, strict=True)
    y, x = ((torch.arange(n, dtype=torch.float64) + 0.5) * length / n for n, length in lengths)
    centres = torch.cartesian_prod(y, x)  # [patches, 2], in reading order
    return (centres[:, None] - centres).norm(dim=-1)


def attention_distance(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> AttentionDistance:
    r"""Measures how far each head looks: the mean distance in pixels, weighted by attention.

    For attention weights :math:`a_{ij}` between patches at distance :math:`d_{ij}` it is
    :math:`\sum_j a_{ij}d_{ij} / \sum_j a_{ij}`, averaged over patches and images, as in Dosovitskiy
    et al. (2021), figure 7. ``grid`` is by default that of the last convolution before each. Of a
    model that attends in windows, ``uniform`` is attention to the whole image all the same.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid, windows=True)
    apart = [patch_distances(layout.grid, layout.size) for layout in at]
    heads = max(layout.heads for layout in at)
    # Sums over images and patches: distances, and patches that attend to any.
    far, seeing = torch.zeros(2, len(at), heads, dtype=torch.float64)
    for batch in attention_weights(model, stream, at):
        for i, (layout, weights) in enumerate(zip(at, batch, strict=True)):
            patch = layout.patches.to(weights.device)  # [windows, places]
            real, each = patch >= 0, weights.double().unflatten(0, (-1, len(patch)))
            between = each * (real[:, :, None] & real[:, None])[:, None]
            pixels = apart[i].to(patch.device)[patch[:, :, None], patch[:, None]][:, None]
            on_patches = between.sum(-1)  # [b, windows, heads, places]
            mean = (between * pixels).sum(-1) / on_patches
            far[i, : layout.heads] += mean.nansum((0, 1, 3)).cpu()
            seeing[i, : layout.heads] += (on_patches > 0).sum((0, 1, 3)).cpu()
    names = tuple(layout.name for layout in at)
    uniform = torch.stack([distances.mean() for distances in apart])
    return AttentionDistance(names, far / seeing, uniform)


@dataclass(frozen=True, eq=False)
class ReceptiveField:
    """How much each pixel matters to the activation at one position."""

    sensitivity: Float64[Tensor, "height width"]  # mean |d activation / d pixel|
    place: Grid  # row and column of the position
    grid: Grid  # rows and columns of all positions
    middle: tuple[float, ...]  # the position's centre, in pixels from the upper left corner

    @property
    def support(self) -> Bool[Tensor, "height width"]:
        """The pixels that matter at all."""
        return self.sensitivity > 0

    @property
    def extent(self) -> tuple[int, int]:
        """Height and width in pixels of the smallest rectangle around the support."""
        rows, columns = (self.support.any(axis).nonzero() for axis in (1, 0))
        if not len(rows):
            return 0, 0
        return int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1

    @property
    def distance(self) -> float:
        """Mean distance of pixels from the middle, weighted by sensitivity, in pixels."""
        sides = zip(self.sensitivity.shape, self.middle, strict=True)
        y, x = (torch.arange(side, dtype=torch.float64) + 0.5 - middle for side, middle in sides)
        far = torch.hypot(y[:, None], x)  # [height, width]
        return ((far * self.sensitivity).sum() / self.sensitivity.sum()).item()


@torch.inference_mode(False)  # in which nothing has a gradient
def receptive_field(
    model: nn.Module,
    images: Images,
    at: str,
    *,
    place: Grid | None = None,
    channels: int = 64,
    batch_size: int = 8,
) -> ReceptiveField:
    r"""Measures the effective receptive field of one position, after Luo et al. (2016).

    The sensitivity to a pixel :math:`p` is the mean of :math:`|\partial y_c / \partial x_p|` over
    the channels :math:`c` of the position's activation :math:`y`, colours and images.

    The module ``at`` gives tokens ``[batch, tokens, dim]``, or a map ``[batch, dim, rows,
    columns]``. ``place`` is by default the middle, ``(rows // 2, columns // 2)``. Each channel
    takes a backward pass; if there are more than ``channels``, so many are drawn.
    """
    first, stream = batches(images, batch_size)
    places = Places(model, first)
    total, count = torch.zeros(first.shape[2:], dtype=torch.float64), 0
    for batch in stream:
        x = batch.detach().clone().requires_grad_()
        size = x.shape[2], x.shape[3]
        with evaluating(model), torch.enable_grad(), centres_of(model, size) as centres:
            maps = activation(model, at)(x)  # [batch, dim, rows, columns]
            maps = maps if maps.ndim == 4 else places.split(maps)[1].movedim(-1, 1)
        rows, columns = maps.shape[2:]
        row, column = place or (rows // 2, columns // 2)
        inside = 0 <= row < rows and 0 <= column < columns
        expect(inside, f"a place of the {rows} x {columns} positions of {at!r}", place)
        y = maps[:, :, row, column]  # [batch, dim]
        drawn = torch.randperm(y.shape[1], generator=torch.Generator().manual_seed(0))[:channels]
        for channel in drawn.tolist():
            answer, gradient = y[:, channel].sum(), None
            if y.requires_grad:
                (gradient,) = torch.autograd.grad(answer, x, retain_graph=True, allow_unused=True)
            if gradient is None:
                raise ValueError(f"{at!r} does not depend on the images")
            total += gradient.double().abs().mean(1).sum(0).cpu()
            count += len(batch)
    axes = zip(centres((rows, columns)), (row, column), strict=True)
    middle = tuple(start + step * i for (start, step), i in axes)
    return ReceptiveField(total / count, (row, column), (rows, columns), middle)
