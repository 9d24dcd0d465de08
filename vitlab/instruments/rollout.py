"""From where all blocks together gather: attention rollout, and relevance for one logit."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

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
from vitlab.instruments.windows import averaged, kept, merging


@dataclass(frozen=True, eq=False)
class Paths:
    """How much each token after every block owes to each token before the first."""

    blocks: tuple[str, ...]  # names of the modules with attention, in the order they run
    # Of blocks between which patches are merged a tuple: [batch, its tokens, the first's tokens].
    matrices: Float64[Tensor, "blocks batch tokens tokens"] | tuple[Tensor, ...]
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
    given. A token attends to its window alone, if the model attends in windows; patches that are
    merged between blocks count alike. ValueError where blocks have other tokens otherwise.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid, windows=True)
    steps = _steps(at)
    found, rows, reads = None, [], []
    for some in stream:
        product, products = _start(at, some), []
        (batch,) = attention_weights(model, [some], at)
        found = found or reading(model, first, at[-1], read)
        for layout, merge, weights in zip(at, steps, batch, strict=True):
            mean = kept(layout.windows, weights.double().mean(1).cpu())
            mixed = (1 - identity) * mean + identity * torch.eye(mean.shape[-1])
            mixed = mixed / mixed.sum(-1, keepdim=True)
            product = averaged(layout.windows, mixed, _merged(merge, product))
            products.append(product)
        rows.append(products)
        reads.append(found.of(model, some))
    paths = _paths(at, steps, rows, torch.cat(reads))
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
    at = layouts(model, first, grid, windows=True)
    steps = _steps(at)
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
        total, totals = _start(at, batch), []
        for layout, merge, a, slope in zip(at, steps, weights, slopes, strict=True):
            products = a.detach().double() * slope.double()  # [b, heads, tokens, tokens]
            mean = kept(layout.windows, products.relu().mean(1).cpu())
            total = _merged(merge, total)
            total = total + averaged(layout.windows, mean, total)
            totals.append(total)
        rows.append(totals)
        found = found or reading(model, first, at[-1], read)
        reads.append(found.of(model, batch))
    return _paths(at, steps, rows, torch.cat(reads), from_identity=True)


def _steps(at: list[Layout]) -> list[Tensor | None]:
    """How patches are merged before each block, if they are, [after, before]."""
    pairs = pairwise([at[0], *at])
    return [
        merging(a.grid, b.grid) if a.extra == b.extra == 0 and a.grid != b.grid else None
        for a, b in pairs
        if a.extra == b.extra == 0 or same_tokens([a, b])
    ]


def _start(at: list[Layout], images: Tensor) -> Float64[Tensor, "batch tokens tokens"]:
    return torch.eye(at[0].tokens, dtype=torch.float64).expand(len(images), -1, -1)


def _merged(step: Tensor | None, rows: Tensor) -> Tensor:
    return rows if step is None else step @ rows


def _paths(
    at: list[Layout],
    steps: list[Tensor | None],
    rows: list[list[Tensor]],
    read: Float64[Tensor, "batch tokens"],
    *,
    from_identity: bool = False,
) -> Paths:
    """What matrices after each block say, by batches; less the identity that they began with."""
    matrices = [torch.cat(batches) for batches in zip(*rows, strict=True)]
    starts: Sequence[Tensor | float] = [0.0] * len(at)
    if from_identity:
        eye = torch.eye(at[0].tokens, dtype=torch.float64)
        starts = [*accumulate(steps, lambda rows, step: _merged(step, rows), initial=eye)][1:]
    onto, patches = read, []
    for matrix, start, step in [*zip(matrices, starts, steps, strict=True)][::-1]:
        owed = torch.einsum("b i, b i j -> b j", onto, matrix - start)
        patches.append(owed[:, at[0].where])
        onto = onto if step is None else onto @ step
    names, alike = tuple(layout.name for layout in at), all(step is None for step in steps)
    together = torch.stack(matrices) if alike else tuple(matrices)
    return Paths(names, together, torch.stack(patches[::-1]), at[0].grid, at[0].extra, read)
