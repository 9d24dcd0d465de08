"""Attention rollout: from where all blocks together gather, if attention were all there is."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from vitlab.instruments.grids import Grid
from vitlab.instruments.layout import attention_weights, layouts, same_tokens
from vitlab.instruments.running import Images, batches


@dataclass(frozen=True, eq=False)
class Rollout:
    """How much each token after every block takes from each token before the first."""

    blocks: tuple[str, ...]  # names of the modules with attention, in the order they run
    matrices: Float64[Tensor, "blocks batch tokens tokens"]
    grid: Grid  # rows and columns of patches
    extra: int  # class, register and other tokens that are no patches
    where: tuple[int, ...]  # for each patch, in reading order, the index of its token

    @property
    def patches(self) -> Float64[Tensor, "blocks batch patches"]:
        """How much the output takes from each patch, summing to 1.

        The output is read from the first token if that is no patch, otherwise from the mean of the
        patches. Models with attention pooling, such as CaiT and SigLIP, read it differently.
        """
        taken = row_read(self.matrices, self.where)
        return taken / taken.sum(-1, keepdim=True)


def row_read(
    matrices: Float64[Tensor, "blocks batch tokens tokens"], where: tuple[int, ...]
) -> Float64[Tensor, "blocks batch patches"]:
    """Of the first token's row, if it is no patch, or the mean of the patches', the patches."""
    index = torch.tensor(where)
    read = matrices.index_select(2, index) if 0 in where else matrices[:, :, :1]
    return read.mean(2).index_select(-1, index)


def rollout(
    model: nn.Module,
    images: Images,
    *,
    identity: float = 0.5,
    grid: Grid | None = None,
    batch_size: int = 16,
) -> Rollout:
    r"""Multiplies the attention of all blocks, after Abnar & Zuidema (2020).

    With :math:`A_l` the attention weights of block :math:`l`, averaged over heads, and
    :math:`\hat A_l = (1 - \alpha) A_l + \alpha I`, it is :math:`\hat A_l \cdots \hat A_1`, whose
    rows sum to 1. The identity stands for the residual connection. Values, projections, norms and
    MLPs are ignored: rollout shows from where attention could have carried something, not what
    mattered.

    Args:
        identity: :math:`\alpha`; 0.5 as in the paper, 0 multiplies the weights alone.
        grid: As for :func:`~vitlab.instruments.distance.attention_distance`.

    Raises:
        ValueError: The blocks have different numbers of tokens, or as for
            :func:`~vitlab.instruments.distance.attention_distance`.
    """
    if not 0 <= identity <= 1:
        raise ValueError(f"identity is a fraction, from 0 to 1: got {identity}")
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
