"""From where all blocks together gather: attention rollout, and relevance for one logit."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from minivit.recording import record, weights_of
from minivit.replacing import replace
from vitlab.calls import logits
from vitlab.instruments.grids import Grid
from vitlab.instruments.layout import (
    Layout,
    attention_weights,
    checked_weights,
    layouts,
    same_tokens,
)
from vitlab.instruments.reading import reading
from vitlab.instruments.running import Classes, Images, batches, evaluating, with_classes


@dataclass(frozen=True, eq=False)
class Paths:
    """How much each token after every block owes to each token before the first."""

    blocks: tuple[str, ...]  # names of the modules with attention, in the order they run
    matrices: Float64[Tensor, "blocks batch tokens tokens"]
    patches: Float64[Tensor, "blocks batch patches"]  # how much the output owes to each patch
    grid: Grid  # rows and columns of patches
    extra: int  # class, register and other tokens that are no patches
    read: Float64[Tensor, "batch tokens"]  # how much of the output is read from each token


def rollout(
    model: nn.Module,
    images: Images,
    *,
    identity: float = 0.5,
    grid: Grid | None = None,
    read: Sequence[int] | None = None,
    batch_size: int = 16,
) -> Paths:
    r"""Multiplies the attention of all blocks, after Abnar & Zuidema (2020).

    With :math:`A_l` the attention weights of block :math:`l`, averaged over heads, and
    :math:`\hat A_l = (1 - \alpha) A_l + \alpha I`, it is :math:`\hat A_l \cdots \hat A_1`. The
    identity, of weight :math:`\alpha`, stands for the residual connection; values, projections and
    MLPs are ignored. Which tokens are ``read`` is found by a gradient, if their indices are not
    given. ValueError where blocks have different numbers of tokens.
    """
    if not 0 <= identity <= 1:
        raise ValueError(f"identity is a fraction, from 0 to 1: got {identity}")
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    eye = torch.eye(same_tokens(at).tokens, dtype=torch.float64)
    found, rows, reads = None, [], []
    for some in stream:
        product, products = eye, []
        (batch,) = attention_weights(model, [some], at)
        found = found or reading(model, first, at[-1], read)
        for weights in batch:
            mean = weights.double().mean(1).cpu()  # [b, tokens, tokens]
            mixed = (1 - identity) * mean + identity * eye
            product = mixed / mixed.sum(-1, keepdim=True) @ product
            products.append(product)
        rows.append(torch.stack(products))
        reads.append(found.of(model, some))
    paths = _paths(at, torch.cat(rows, 1), torch.cat(reads))
    return dataclasses.replace(paths, patches=paths.patches / paths.patches.sum(-1, keepdim=True))


@torch.inference_mode(False)  # in which nothing has a gradient
def relevance(
    model: nn.Module,
    images: Images,
    classes: Classes | None = None,
    *,
    grid: Grid | None = None,
    read: Sequence[int] | None = None,
    batch_size: int = 16,
) -> Paths:
    r"""Adds up attention times gradient through all blocks, after Chefer et al. (2021).

    With :math:`A_l` the attention weights of block :math:`l`, and :math:`\nabla A_l` the gradient
    of one logit, by default the largest, :math:`\bar A_l` is the mean over heads of the positive
    part of :math:`\nabla A_l \odot A_l`. From :math:`R = I`, each block adds :math:`\bar A_l R`.
    ``patches`` are zero where only the identity leads to them.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    eye = torch.eye(same_tokens(at).tokens, dtype=torch.float64)
    names = [weights_of(layout.name) for layout in at]

    def track(weights: Tensor) -> Tensor:  # also where they depend on no images and no parameters
        return weights if weights.requires_grad else weights.detach().requires_grad_()

    found, rows, reads = None, [], []
    for batch, class_of in with_classes(stream, classes):
        tracked = replace(model, dict.fromkeys(names, track))
        with evaluating(model), torch.enable_grad(), record(model, *names) as seen, tracked:
            scores = logits(model, batch.detach().clone().requires_grad_())
            watched = scores.gather(1, class_of(scores)[:, None]).sum()
            weights = [checked_weights(seen, layout, len(batch)) for layout in at]
            slopes = torch.autograd.grad(watched, weights, materialize_grads=True)
        total, totals = eye.expand(len(batch), -1, -1), []
        for a, slope in zip(weights, slopes, strict=True):
            products = a.detach().double() * slope.double()  # [b, heads, tokens, tokens]
            total = total + products.relu().mean(1).cpu() @ total
            totals.append(total)
        rows.append(torch.stack(totals))
        found = found or reading(model, first, at[-1], read)
        reads.append(found.of(model, batch))
    return _paths(at, torch.cat(rows, 1), torch.cat(reads), eye)


def _paths(at: list[Layout], matrices: Tensor, read: Tensor, less: Tensor | float = 0) -> Paths:
    names, first = tuple(layout.name for layout in at), at[0]
    patches = torch.einsum("b i, l b i j -> l b j", read, matrices - less)[..., first.where]
    return Paths(names, matrices, patches, first.grid, first.extra, read)
