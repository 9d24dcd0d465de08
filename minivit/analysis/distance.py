"""How far attention looks, in pixels, and how far it would, did it prefer nothing."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from minivit.analysis.lattice import Grid
from minivit.analysis.layout import attention_weights, layouts
from minivit.analysis.running import batches


@dataclass(frozen=True, eq=False)
class AttentionDistance:
    """What :func:`attention_distance` finds. A block here is one that has attention."""

    blocks: tuple[str, ...]  # their names in the model, in the order in which they run
    pixels: Tensor  # [blocks, heads], mean distance from a patch to the patches it attends to
    uniform: Tensor  # [blocks], the same where every patch attends to all patches alike
    patches: Tensor  # [blocks, heads], share of a patch's attention that goes to patches


def patch_distances(grid: Grid, size: tuple[float, float]) -> Tensor:
    """The distances between the centres of patches.

    Args:
        grid: Rows and columns of patches.
        size: Height and width of all patches together, in pixels.

    Returns:
        In pixels, float64 ``[patches, patches]``.
    """
    lengths = zip(grid, size, strict=True)
    y, x = ((torch.arange(n, dtype=torch.float64) + 0.5) * length / n for n, length in lengths)
    centres = torch.cartesian_prod(y, x)  # [patches, 2], in reading order
    return (centres[:, None] - centres).norm(dim=-1)


def attention_distance(
    model: nn.Module,
    images: Tensor | Iterable[Tensor],
    *,
    grid: Grid | None = None,
    batch_size: int = 16,
) -> AttentionDistance:
    r"""Measures how far each head looks: the mean distance, weighted by attention.

    Where patch :math:`i` attends to patch :math:`j` with weight :math:`a_{ij}`, at a distance of
    :math:`d_{ij}` between their centres, it is :math:`\sum_j a_{ij}d_{ij} / \sum_j a_{ij}`,
    averaged over patches and pictures, as in Dosovitskiy et al. (2021), figure 7, and Raghu et al.
    (2021). A patch's attention to itself counts, with distance 0.

    Class and register tokens stand nowhere. As queries they are left out; as keys too, and the
    division makes a patch's other weights sum to 1: otherwise attention to a class token would pass
    for attention to the patch itself. ``patches`` is the share that is left. A patch that attends
    to no patch at all is left out.

    ``blocks`` names those with as many keys as queries, and no others: the stages of PVT and
    MViTv2 that attend to pooled keys, VOLO's outlook and a pool with a query of its own are left
    out. Where heads are mixed behind the softmax, as in CaiT and DeepViT, it is the softmax that is
    measured.

    A distance says little beside ``uniform``, what a head has that prefers no patch: 0.52 times
    the side of a square picture.

    Args:
        model: Any with attention between tokens that stand on a grid; minivit's, torchvision's,
            timm's and Hugging Face's. It is used in its mode of evaluation, and comes back as it
            was.
        images: The model's input, ``[n, channels, height, width]``, or batches of such, all of one
            size. Memory is that of one batch.
        grid: Rows and columns of patches. Default: those of the last convolution before each
            attention, as a rule the patch embedding.
        batch_size: Images at a time, where they are not in batches already. Default: 16.

    Returns:
        Float64 tensors on the CPU, NaN where a block has fewer heads than others.

    Raises:
        ValueError: No images, or of several sizes; or no attention between tokens, several in one
            block, or of tokens that are not the patches of a grid and others that stand nowhere.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    apart = [patch_distances(layout.grid, layout.size) for layout in at]
    # Sums over pictures and their patches: of distances, of how many see patches; of shares, of all
    far, seeing, share, count = torch.zeros(
        4, len(at), max(layout.heads for layout in at), dtype=torch.float64
    )
    for batch in attention_weights(model, stream, at):
        for i, (layout, weights) in enumerate(zip(at, batch, strict=True)):
            where = torch.tensor(layout.where, device=weights.device)
            between = weights.index_select(2, where).index_select(3, where).double()
            seen = between.sum(-1)  # [b, heads, n] of [b, heads, n, n]
            pixels = (between * apart[i].to(between.device)).sum(-1) / seen
            head = slice(layout.heads)
            far[i, head] += pixels.nansum((0, 2)).cpu()
            seeing[i, head] += (seen > 0).sum((0, 2)).cpu()
            share[i, head] += seen.sum((0, 2)).cpu()
            count[i, head] += seen[:, 0].numel()
    return AttentionDistance(
        tuple(layout.name for layout in at),
        far / seeing,
        torch.stack([distances.mean() for distances in apart]),
        share / count,
    )
