"""From where all blocks together gather: attention rollout, and relevance for one logit."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from minivit.recording import record, weights_of
from minivit.replacing import replace
from vitlab.calls import logits
from vitlab.instruments.grids import Grid
from vitlab.instruments.layout import Layout, attention_weights, layouts, same_tokens, weights_in
from vitlab.instruments.reading import reading
from vitlab.instruments.running import Classes, Images, batches, evaluating, expect, with_classes


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

    def factors(batch: Tensor) -> Iterator[Tensor]:
        (weights,) = attention_weights(model, [batch], at)
        for layout, a in zip(at, weights, strict=True):
            mean = kept(layout.windows, a.double().mean(1).cpu())
            mixed = (1 - identity) * mean + identity * torch.eye(mean.shape[-1])
            yield mixed / mixed.sum(-1, keepdim=True)

    paths = _paths(model, first, at, read, ((batch, factors(batch)) for batch in stream))
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
    names = [weights_of(layout.name) for layout in at]

    def track(weights: Tensor) -> Tensor:  # also where they depend on no images and no parameters
        return weights if weights.requires_grad else weights.detach().requires_grad_()

    def factors(batch: Tensor, class_of: Callable[[Tensor], Tensor]) -> Iterator[Tensor]:
        tracked = replace(model, dict.fromkeys(names, track))
        with evaluating(model), torch.enable_grad(), record(model, *names) as seen, tracked:
            scores = logits(model, batch.detach().clone().requires_grad_())
            watched = scores.gather(1, class_of(scores)[:, None]).sum()
            weights = [weights_in(seen, layout, len(batch)) for layout in at]
            slopes = torch.autograd.grad(watched, weights, materialize_grads=True)
        for layout, a, slope in zip(at, weights, slopes, strict=True):
            products = a.detach().double() * slope.double()  # [b, heads, tokens, tokens]
            mean = kept(layout.windows, products.relu().mean(1).cpu())
            yield mean + torch.eye(mean.shape[-1])

    pairs = ((batch, factors(batch, class_of)) for batch, class_of in with_classes(stream, classes))
    return _paths(model, first, at, read, pairs, less=1.0)


def _paths(
    model: nn.Module,
    images: Tensor,
    at: list[Layout],
    read: Sequence[int] | None,
    factors: Iterable[tuple[Tensor, Iterator[Tensor]]],
    less: float = 0.0,
) -> Paths:
    """What products of each block's factors say, for pairs of images and these factors.

    ``patches`` are without so much of the identity that the products begin with.
    """
    # How patches are merged before each block, [after, before], if they are.
    merges = [
        merging(a.grid, b.grid) if a.extra == b.extra == 0 and a.grid != b.grid else None
        for a, b in pairwise([at[0], *at])
        if a.extra == b.extra == 0 or same_tokens([a, b])
    ]
    eye = torch.eye(at[0].tokens, dtype=torch.float64)
    found, rows, reads = None, [], []
    for batch, mixed in factors:
        product, products = eye.expand(len(batch), -1, -1), []
        for layout, merge, factor in zip(at, merges, mixed, strict=True):
            product = averaged(layout.windows, factor, _merged(merge, product))
            products.append(product)
        rows.append(products)
        found = found or reading(model, images, at[-1], read)
        reads.append(found.of(model, batch))
    matrices = [torch.cat(parts) for parts in zip(*rows, strict=True)]
    _, *starts = accumulate(merges, lambda x, merge: _merged(merge, x), initial=less * eye)
    shares = onto = torch.cat(reads)
    patches = []
    for matrix, start, merge in [*zip(matrices, starts, merges, strict=True)][::-1]:
        owed = torch.einsum("b i, b i j -> b j", onto, matrix - start)
        patches.append(owed[:, at[0].where])
        onto = onto if merge is None else onto @ merge
    names, alike = tuple(layout.name for layout in at), all(merge is None for merge in merges)
    together = torch.stack(matrices) if alike else tuple(matrices)
    return Paths(names, together, torch.stack(patches[::-1]), at[0].grid, at[0].extra, shares)


def _merged(merge: Tensor | None, rows: Tensor) -> Tensor:
    return rows if merge is None else merge @ rows


def kept(
    windows: Int64[Tensor, "windows places"], weights: Float64[Tensor, "groups ... places"]
) -> Float64[Tensor, "groups ... places"]:
    """The weights without those on padding."""
    real = (windows >= 0).to(weights).repeat(len(weights) // len(windows), 1)
    return torch.einsum("b ... j, b j -> b ... j", weights, real)


def averaged(
    windows: Int64[Tensor, "windows places"],
    weights: Float64[Tensor, "groups places places"],
    rows: Float64[Tensor, "batch tokens more"],
) -> Float64[Tensor, "batch tokens more"]:
    """For each token a weighted sum of the rows of its window's tokens."""
    sums = weights.unflatten(0, (-1, len(windows))) @ rows[:, windows]
    real = windows >= 0
    return torch.zeros_like(rows).index_copy(1, windows[real], sums[:, real])


def merging(before: Grid, after: Grid) -> Float64[Tensor, "after before"]:
    """How the tokens of a grid become those of a smaller one; those that are merged count alike.

    ValueError where the rows and columns do not become fewer by one factor.
    """
    side = -(-before[0] // after[0])
    each = torch.eye(before[0] * before[1], dtype=torch.float64).unflatten(1, before)
    merged = F.avg_pool2d(each, side, ceil_mode=True)
    expect(merged.shape[1:] == after, f"{before} patches merged {side} x {side}", after)
    return merged.flatten(1).mT
