"""Attention rollout: what all blocks together take from where, if attention were all there is."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from minivit.analysis.layout import Grid, attention_weights, layouts, same_tokens
from minivit.analysis.running import batches


@dataclass(frozen=True, eq=False)
class Rollout:
    """What :func:`rollout` finds. A block here is one that has attention."""

    blocks: tuple[str, ...]  # their names in the model, in the order in which they run
    # [blocks, n, tokens, tokens]: how much each token after the block has of each before the first
    matrices: Tensor
    grid: Grid  # rows and columns of patches
    extra: int  # class, register and other tokens that are no patches
    where: tuple[int, ...]  # [patches], which of the tokens the patches are, in reading order

    @property
    def patches(self) -> Tensor:
        """How much the answer has of each patch, ``[blocks, n, patches]``, summing to 1.

        The answer is read from the first token where that is no patch, and from the mean of the
        patches where it is one. That is not what a model does that reads its answer through a pool
        with a query of its own, such as CaiT and SigLIP.
        """
        where = torch.tensor(self.where)
        read = self.matrices.index_select(2, where) if 0 in self.where else self.matrices[:, :, :1]
        shares = read.mean(2).index_select(-1, where)
        return shares / shares.sum(-1, keepdim=True)


def rollout(
    model: nn.Module,
    images: Tensor | Iterable[Tensor],
    *,
    identity: float = 0.5,
    grid: Grid | None = None,
    batch_size: int = 16,
) -> Rollout:
    r"""Multiplies the attention of all blocks, after Abnar & Zuidema (2020).

    With :math:`A_l` the mean of block :math:`l`'s attention weights over its heads, and
    :math:`\hat A_l = (1 - \alpha) A_l + \alpha I`, it is :math:`\hat A_l \cdots \hat A_1`. The
    identity stands for the residual connection, which carries every token past the attention. The
    rows of every product sum to 1. Values, projections, norms and MLPs are left out of account, and
    what mixes heads behind the softmax, as in CaiT and DeepViT: it says where attention could have
    carried something from, not what mattered.

    Args:
        model: As for :func:`~minivit.analysis.distance.attention_distance`.
        images: The model's input, ``[n, channels, height, width]``, or batches of such, all of one
            size. The result has a tokens x tokens matrix for each and each block.
        identity: The share :math:`\alpha`, at least 0 and at most 1. Default: 0.5, as in the paper;
            0 multiplies the weights alone.
        grid: As for :func:`~minivit.analysis.distance.attention_distance`.
        batch_size: Images at a time, where they are not in batches already. Default: 16.

    Returns:
        Float64 on the CPU.

    Raises:
        ValueError: A share that is none; blocks with different numbers of tokens; or as for
            :func:`~minivit.analysis.distance.attention_distance`.
    """
    if not 0 <= identity <= 1:
        raise ValueError(f"identity is a share, from 0 to 1: got {identity}")
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    one = same_tokens(at)
    found = []
    for batch in attention_weights(model, stream, at):
        product = eye = torch.eye(batch[0].shape[-1], dtype=torch.float64)
        products = []
        for weights in batch:
            mean = weights.double().mean(1).cpu()  # [b, tokens, tokens]
            mixed = (1 - identity) * mean + identity * eye
            product = mixed / mixed.sum(-1, keepdim=True) @ product
            products.append(product)
        found.append(torch.stack(products))
    names = tuple(layout.name for layout in at)
    return Rollout(names, torch.cat(found, 1), one.grid, one.extra, one.where)
