"""Which patches an answer depends on: by deleting their tokens, and by gradients of the picture."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from einops import reduce
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.analysis.layout import Grid, layouts, same_tokens
from minivit.analysis.running import (
    batches,
    chosen,
    evaluating,
    leaf,
    rows_and_columns,
    with_classes,
)
from minivit.recording.calls import logits
from minivit.recording.hooks import before


def token_ablation(
    model: nn.Module,
    images: Tensor | Iterable[Tensor],
    classes: Tensor | None = None,
    *,
    grid: Grid | None = None,
    batch_size: int = 64,
) -> Tensor:
    """Deletes every patch's token before the first block, one at a time.

    What is left keeps its positions, and the model goes on as if the patch had never been cut out:
    nobody attends to it, and no mean has it.

    Args:
        model: A classifier with attention between tokens that stand on a grid: minivit's,
            torchvision's, timm's, Hugging Face's. It is used in its mode of evaluation, and comes
            back as it was.
        images: The model's input, ``[n, channels, height, width]``, or batches of such, all of one
            size.
        classes: The logit to watch for each picture, ``[n]``. Default: the largest.
        grid: As for :func:`~minivit.analysis.distance.attention_distance`.
        batch_size: Images at a time, where they are not in batches already. Default: 64.

    Returns:
        By how much the logit falls without each patch, ``[n, patches]``, float64 on the CPU.

    Raises:
        TypeError: Classes that are no whole numbers.
        ValueError: No images, or of several sizes, or not finite; not one class for each, or none
            of the model's; a model that gives no logits; blocks with different numbers of tokens;
            or as for :func:`~minivit.analysis.distance.attention_distance`.
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
    """Deletes a token from what comes into the first block, and from the masks of all."""
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
    images: Tensor | Iterable[Tensor],
    classes: Tensor | None = None,
    *,
    batch_size: int = 16,
) -> Tensor:
    """Says how much a logit changes with each pixel, after Simonyan et al. (2014).

    The sensitivity of a pixel is the largest absolute value of the logit's gradient in any of its
    colours. :func:`patch_means` makes it comparable with what is known of patches.

    Args:
        model: Any classifier. It is used in its mode of evaluation, and comes back as it was.
        images: The model's input, ``[n, channels, height, width]``, or batches of such, all of one
            size.
        classes: The logit to watch for each picture, ``[n]``. Default: the largest.
        batch_size: Images at a time, where they are not in batches already. Default: 16.

    Returns:
        ``[n, height, width]``, float64 on the CPU.

    Raises:
        TypeError: Images, or classes, that are no such numbers.
        ValueError: No images, or of several sizes, or not finite; not one class for each, or none
            of the model's; a model that gives no logits.
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


def patch_means(maps: Tensor, grid: Grid) -> Tensor:
    """Averages maps of pixels over patches.

    Args:
        maps: ``[n, height, width]``.
        grid: Rows and columns of patches.

    Returns:
        In reading order, ``[n, rows * columns]``.

    Raises:
        ValueError: No grid, or one that does not divide the maps.
    """
    rows, columns = rows_and_columns(grid)
    if maps.ndim != 3 or maps.shape[1] % rows or maps.shape[2] % columns:
        raise ValueError(
            f"expected maps [n, height, width] that {rows} x {columns} patches divide: "
            f"got {list(maps.shape)}"
        )
    return reduce(maps, "n (r h) (c w) -> n (r c)", "mean", r=rows, c=columns)
