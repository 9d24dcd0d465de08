"""Which patches a logit depends on: by deleting their tokens, and by the image's gradient."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from einops import reduce
from jaxtyping import Float, Float64, Integer
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.hooks import before
from vitlab.calls import logits
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.layout import layouts, same_tokens
from vitlab.instruments.running import Images, batches, chosen, evaluating, leaf, with_classes


def token_ablation(
    model: nn.Module,
    images: Images,
    classes: Integer[Tensor, "batch"] | None = None,
    *,
    grid: Grid | None = None,
    batch_size: int = 64,
) -> Float64[Tensor, "batch patches"]:
    """Measures by how much a logit falls when a patch's token is deleted before the first block.

    The other tokens keep their positions, and the model runs without the deleted one: nothing
    attends to it, and no mean includes it.

    Args:
        classes: The logit of each image to watch. Default: the largest.
        grid: As for :func:`~vitlab.instruments.distance.attention_distance`.

    Raises:
        ValueError: The blocks have different numbers of tokens, or as for
            :func:`~vitlab.instruments.distance.attention_distance`.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    one = same_tokens(at)
    blocks = [model.get_submodule(layout.name) for layout in at]
    found = []
    for batch, some in with_classes(stream, classes):
        with evaluating(model):
            whole = logits(model, batch)
            which = chosen(some, whole)[:, None]
            without = []
            for token in one.where:
                with _deleted(blocks, token, one.tokens):
                    without.append(logits(model, batch).gather(1, which))
        found.append((whole.gather(1, which) - torch.cat(without, 1)).double().cpu())
    return torch.cat(found)


@contextmanager
def _deleted(blocks: list[nn.Module], token: int, tokens: int) -> Iterator[None]:
    """Deletes a token from the first block's input, and from the masks of all blocks."""
    kept = [i for i in range(tokens) if i != token]

    def cut(x: Tensor) -> Tensor:
        if x.ndim == 3 and x.shape[1] == tokens:  # [batch, tokens, dim]
            return x[:, kept]
        return x[..., kept, :][..., kept] if x.shape[-2:] == (tokens, tokens) else x

    def without(module: nn.Module, args: Any, kwargs: Any) -> Any:
        return tree_map_only(Tensor, cut, (args, kwargs))

    with ExitStack() as stack:
        for block in blocks:
            stack.enter_context(before(block, without))
        yield


@torch.inference_mode(False)  # in which nothing has a gradient
def saliency(
    model: nn.Module,
    images: Images,
    classes: Integer[Tensor, "batch"] | None = None,
    *,
    batch_size: int = 16,
) -> Float64[Tensor, "batch height width"]:
    """Measures how much a logit changes with each pixel, after Simonyan et al. (2014).

    The sensitivity of a pixel is the largest absolute value of the logit's gradient over its
    colours. ``classes`` says which logit of each image to watch; the default is the largest. Use
    :func:`patch_means` to compare it with measures of patches.
    """
    _, stream = batches(images, batch_size)
    found = []
    for batch, some in with_classes(stream, classes):
        x = leaf(batch)
        with evaluating(model), torch.enable_grad():
            scores = logits(model, x)
            watched = scores.gather(1, chosen(some, scores)[:, None])
            (gradient,) = torch.autograd.grad(watched.sum(), x)
        found.append(gradient.double().abs().amax(1).cpu())
    return torch.cat(found)


def patch_means(
    maps: Float[Tensor, "batch height width"], grid: Grid
) -> Float[Tensor, "batch patches"]:
    """Averages maps of pixels over patches, in reading order."""
    rows, columns = rows_and_columns(grid)
    if maps.ndim != 3 or maps.shape[1] % rows or maps.shape[2] % columns:
        raise ValueError(
            f"expected maps [n, height, width] that {rows} x {columns} patches divide: "
            f"got {list(maps.shape)}"
        )
    return reduce(maps, "n (r h) (c w) -> n (r c)", "mean", r=rows, c=columns)
