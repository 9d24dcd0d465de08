"""Averages over the grid of patches by weights that are fixed, in the place of attention.

Each row of a smoothing matrix sums to 1, as a row of attention weights does. Put in the place of a
model's own by :func:`~minivit.replacing.replace`, it leaves the maps to values and to the output
as they are::

    blurred = gaussian_smoothing((8, 8), width=1.0)  # [64, 64]
    with minivit.replace(model, between_patches(model, images, blurred)):
        model(images)
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float64, Shaped
from torch import Tensor, nn

from minivit.parts import local_mask
from minivit.recording import weights_of
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.layout import attention_weights, layouts
from vitlab.instruments.running import Images, batches, expect

Weights = Shaped[Tensor, "*heads patches patches"]


def gaussian_smoothing(grid: Grid, width: float) -> Float64[Tensor, "patches patches"]:
    r"""Gaussian weights :math:`\propto \exp(-d^2/2\sigma^2)` of all patches for each patch.

    Rows sum to 1, at the edges too. ``width`` is the standard deviation :math:`\sigma`, in patches:
    0 gives the identity, infinity the mean of all patches.
    """
    rows, columns = rows_and_columns(grid)
    places = torch.cartesian_prod(torch.arange(float(rows)), torch.arange(float(columns))).double()
    squares = (places[:, None] - places).square().sum(-1)  # [patches, patches]
    if width == 0:
        return (squares == 0).double()
    return (squares / -2 / width / width).softmax(-1)


def box_blur(grid: Grid, side: int) -> Float64[Tensor, "patches patches"]:
    """The mean of a square of patches around each patch, cut off at the edges of the grid.

    ``side`` is that of the square, odd; 1 gives the identity.
    """
    near = local_mask(rows_and_columns(grid), side).double()
    return near / near.sum(1, keepdim=True)


def between_patches(
    model: nn.Module, images: Tensor, weights: Weights, *, grid: Grid | None = None
) -> dict[str, Callable[[Tensor], Tensor]]:
    """For :func:`~minivit.replacing.replace`: patches are averaged by fixed weights.

    Every patch averages the patches by these weights, and takes nothing from class and register
    tokens, whose own attention stays what it is. ValueError as for
    :func:`~vitlab.instruments.layout.layouts`, and where weights are of other patches or heads.

    Args:
        images: One or more, to see where the patches' tokens are.
        weights: The same for all heads, or one matrix for each. Rows sum to 1.
        grid: As for :func:`~vitlab.instruments.layout.layouts`.
    """
    replaced: dict[str, Callable[[Tensor], Tensor]] = {}
    for layout in layouts(model, images, grid):
        count = len(layout.where)
        allowed = ([count, count], [layout.heads, count, count])
        shapes = f"weights {allowed[0]} or {allowed[1]} in {layout.name!r}"
        expect(list(weights.shape) in allowed, shapes, list(weights.shape))
        replaced[weights_of(layout.name)] = partial(_fixed, layout.where, weights)
    return replaced


def _fixed(where: tuple[int, ...], weights: Tensor, own: Tensor) -> Tensor:
    """A model's own weights, [images, heads, tokens, tokens], but for the queries of patches."""
    at = torch.tensor(where, device=own.device)
    new = own.clone()
    new[..., at, :] = 0
    new[..., at[:, None], at] = weights.to(own)
    return new


def mean_attention(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 64
) -> dict[str, Float64[Tensor, "1 heads tokens tokens"]]:
    """Mean attention weights over images, by name, for :func:`~minivit.replacing.replace`.

    With them in the place of its own, a model averages every image in the same way.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    totals: list[Tensor] = [torch.zeros(()).double()] * len(at)
    count = 0
    for batch in attention_weights(model, stream, at):
        for i, weights in enumerate(batch):
            totals[i] = totals[i] + weights.double().sum(0).cpu()
        count += len(batch[0])
    named = zip(at, totals, strict=True)
    return {weights_of(layout.name): total[None] / count for layout, total in named}
