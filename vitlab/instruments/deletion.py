"""Which patches a logit depends on, by deleted tokens and by gradients, and if that is right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from einops import reduce
from jaxtyping import Float, Float64
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.hooks import before
from vitlab.calls import expect, logits
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.layout import layouts, same_tokens
from vitlab.instruments.running import Classes, Images, batches, entered, evaluating, with_classes

Scores = Float[Tensor, "batch patches"]


def token_ablation(
    model: nn.Module,
    images: Images,
    classes: Classes | None = None,
    *,
    grid: Grid | None = None,
    batch_size: int = 64,
) -> Float64[Tensor, "batch patches"]:
    """Measures by how much a logit falls when a patch's token is deleted before the first block.

    The other tokens keep their positions. ``classes`` are by default those of the largest logits.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    tokens = same_tokens(at)
    rows = []
    for batch, class_of in with_classes(stream, classes):
        with evaluating(model):
            whole = logits(model, batch)
            which = class_of(whole)[:, None]
            without = []
            for token in tokens.where:
                delete = _deleting(token, tokens.tokens)
                # In the first block, and in the masks of all blocks.
                with entered(before(model.get_submodule(layout.name), delete) for layout in at):
                    without.append(logits(model, batch).gather(1, which))
        rows.append((whole.gather(1, which) - torch.cat(without, 1)).double().cpu())
    return torch.cat(rows)


def _deleting(token: int, tokens: int) -> Callable[..., Any]:
    """A hook that deletes a token from all that a block reads."""
    kept = [i for i in range(tokens) if i != token]

    def cut(x: Tensor) -> Tensor:
        if x.ndim == 3 and x.shape[1] == tokens:  # [batch, tokens, dim]
            return x[:, kept]
        return x[..., kept, :][..., kept] if x.shape[-2:] == (tokens, tokens) else x

    return lambda block, args, kwargs: tree_map_only(Tensor, cut, (args, kwargs))


@torch.inference_mode(False)  # in which nothing has a gradient
def saliency(
    model: nn.Module, images: Images, classes: Classes | None = None, *, batch_size: int = 16
) -> Float64[Tensor, "batch height width"]:
    """The largest absolute gradient of a logit over colours, after Simonyan et al. (2014)."""
    rows = []
    for batch, class_of in with_classes(batches(images, batch_size)[1], classes):
        x = batch.detach().clone().requires_grad_()
        with evaluating(model), torch.enable_grad():
            scores = logits(model, x)
            watched = scores.gather(1, class_of(scores)[:, None])
            (gradient,) = torch.autograd.grad(watched.sum(), x)
        rows.append(gradient.double().abs().amax(1).cpu())
    return torch.cat(rows)


def patch_means(maps: Float[Tensor, "batch height width"], grid: Grid) -> Scores:
    """Averages maps of pixels over patches, in reading order."""
    rows, columns = rows_and_columns(grid)
    fits = maps.numel() and not (maps.shape[1] % rows or maps.shape[2] % columns)
    expect(fits, f"maps that {rows} x {columns} patches divide", list(maps.shape))
    return reduce(maps, "n (r h) (c w) -> n (r c)", "mean", r=rows, c=columns)


@dataclass(frozen=True, eq=False)
class DeletionCurves:
    """Probability of a class, while patches go or come in the order of their scores."""

    fraction: Float64[Tensor, "steps"]  # of the patches that went, or came, from 0 to 1
    deletion: Float64[Tensor, "batch steps"]  # starts at the image
    insertion: Float64[Tensor, "batch steps"]  # ends at the image


def deletion_curves(
    model: nn.Module,
    images: Images,
    scores: Scores,
    classes: Classes | None = None,
    *,
    grid: Grid,
    batch_size: int = 64,
) -> DeletionCurves:
    """Deletes patches from the best scored on, and inserts them, after Petsiuk et al. (2018).

    Scores are right about a classifier if its answer falls soon when their best patches are
    deleted, and comes soon when they are inserted. Compare areas with those of random scores. In
    place of a patch stands the image's mean colour; ``classes`` are by default the most probable.
    """
    rows, columns = rows_and_columns(grid)
    patches = rows * columns
    fits = scores.shape[1] == patches
    expect(fits, f"scores [images, {rows} * {columns} patches]", list(scores.shape))
    places = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    parts, done = [], 0
    for batch, class_of in with_classes(batches(images, batch_size)[1], classes):
        place = places[done : done + len(batch)].to(batch.device)
        done += len(batch)
        if len(place) != len(batch):
            break
        with evaluating(model):
            empty = batch.mean((2, 3), keepdim=True)
            true = class_of(logits(model, batch))[:, None]
            curves = []
            for count in range(patches + 1):
                cells = (place < count).view(-1, 1, rows, columns).float()
                gone = F.interpolate(cells, batch.shape[2:], mode="nearest-exact").bool()
                pictures = [torch.where(gone, empty, batch), torch.where(gone, batch, empty)]
                sure = logits(model, torch.cat(pictures)).double().softmax(-1)
                curves.append(sure.gather(1, true.repeat(2, 1)).view(2, -1).cpu())
        parts.append(torch.stack(curves, 2))  # [2, b, steps]
    expect(done == len(scores), "scores for each image", f"{len(scores)} for {done} or more")
    fraction = torch.arange(patches + 1, dtype=torch.float64) / patches
    return DeletionCurves(fraction, *torch.cat(parts, 1))
