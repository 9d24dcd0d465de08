"""Relevance: attention, weighted by what it does for one logit, through all blocks together."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Integer
from torch import Tensor, nn

from minivit.recording import record, weights_of
from minivit.replacing import replace
from vitlab.calls import logits
from vitlab.instruments.grids import Grid
from vitlab.instruments.layout import checked_weights, layouts, same_tokens
from vitlab.instruments.rollout import row_read
from vitlab.instruments.running import Images, batches, chosen, evaluating, leaf, with_classes


@dataclass(frozen=True, eq=False)
class Relevance:
    """How much each token after every block owes to each token before the first, for one logit."""

    blocks: tuple[str, ...]  # names of the modules with attention, in the order they run
    matrices: Float64[Tensor, "blocks batch tokens tokens"]
    grid: Grid  # rows and columns of patches
    extra: int  # class, register and other tokens that are no patches
    where: tuple[int, ...]  # for each patch, in reading order, the index of its token

    @property
    def patches(self) -> Float64[Tensor, "blocks batch patches"]:
        """How much the output owes to each patch, zero where only the identity leads to it.

        The output is read as for :class:`~vitlab.instruments.rollout.Rollout`.
        """
        moved = self.matrices - torch.eye(self.matrices.shape[-1], dtype=torch.float64)
        return row_read(moved, self.where)


@torch.inference_mode(False)  # in which nothing has a gradient
def relevance(
    model: nn.Module,
    images: Images,
    classes: Integer[Tensor, "batch"] | None = None,
    *,
    grid: Grid | None = None,
    batch_size: int = 16,
) -> Relevance:
    r"""Adds up attention times gradient through all blocks, after Chefer et al. (2021).

    With :math:`A_l` the attention weights of block :math:`l`, and :math:`\nabla A_l` the gradient
    of one logit with respect to them, :math:`\bar A_l` is the mean over heads of the positive part
    of :math:`\nabla A_l \odot A_l`. From :math:`R = I`, each block adds :math:`\bar A_l R` to
    :math:`R`: the method for self-attention of "Generic attention-model explainability". Unlike
    :func:`~vitlab.instruments.rollout.rollout` it is different for each class, and leaves out
    attention to tokens whose values do nothing for the logit, or speak against it.

    Args:
        classes: The logit of each image. Default: the largest.
        grid: As for :func:`~vitlab.instruments.distance.attention_distance`.

    Raises:
        ValueError: The blocks have different numbers of tokens, or several images share their
            attention weights; or as for :func:`~vitlab.instruments.distance.attention_distance`.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    one = same_tokens(at)
    names = [weights_of(layout.name) for layout in at]
    found = []
    for batch, some in with_classes(stream, classes):
        tracked = replace(model, dict.fromkeys(names, _tracked))
        with evaluating(model), torch.enable_grad(), record(model, *names) as seen, tracked:
            scores = logits(model, leaf(batch))
            watched = scores.gather(1, chosen(some, scores)[:, None]).sum()
            weights = [checked_weights(seen, layout, len(batch)) for layout in at]
            slopes = torch.autograd.grad(watched, weights, materialize_grads=True)
        total = torch.eye(one.tokens, dtype=torch.float64).expand(len(batch), -1, -1)
        totals = []
        for a, slope in zip(weights, slopes, strict=True):
            mean = (
                (a.detach().double() * slope.double()).relu().mean(1).cpu()
            )  # [b, tokens, tokens]
            total = total + mean @ total
            totals.append(total)
        found.append(torch.stack(totals))
    blocks = tuple(layout.name for layout in at)
    return Relevance(blocks, torch.cat(found, 1), one.grid, one.extra, one.where)


def _tracked(weights: Tensor) -> Tensor:
    """Weights with a gradient, also where they depend neither on images nor on parameters."""
    return weights if weights.requires_grad else weights.detach().requires_grad_()
