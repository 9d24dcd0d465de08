"""How far attention looks, in pixels, next to the distance of uniform attention."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from vitlab.instruments.grids import Grid
from vitlab.instruments.layout import attention_weights, layouts
from vitlab.instruments.running import Images, batches


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
