"""What mixing the tokens of a grid does to each wave on it; fixed weights in attention's place."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Float64, Shaped
from torch import Tensor, nn

from minivit.recording import weights_of
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.layout import Layout, attention_weights, layouts, same_tokens
from vitlab.instruments.running import Images, batches, expect


@dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """What becomes of each wave on a grid, ordered as ``fft2``'s; sizes relative to the wave's."""

    gain: Float64[Tensor, "*matrices rows columns"]  # size of the output
    same: Float64[Tensor, "*matrices rows columns"]  # of its part that is still this wave


def frequency_response(
    matrix: Float[Tensor, "*matrices queries keys"], grid: Grid
) -> FrequencyResponse:
    """What matrices that mix the tokens of a grid, in reading order, do to each wave on it."""
    rows, columns = rows_and_columns(grid)
    n = rows * columns
    fits = matrix.shape[-2:] == (n, n)
    expect(fits, f"matrices [{n}, {n}] for {rows} x {columns} places", list(matrix.shape))
    flat = matrix.detach().double().unflatten(-1, (rows, columns))
    # Sums over keys with e^{+2 pi i ...}; [..., places, rows, columns]
    out = torch.fft.fft2(flat).conj() / n**0.5
    gain = out.abs().square().sum(-3).sqrt()
    parts = torch.fft.fft2(out.movedim(-3, -1).unflatten(-1, (rows, columns))) / n**0.5
    parts = parts.abs().flatten(-4, -3).flatten(-2)  # [..., wave that entered, wave that left]
    same = parts.diagonal(dim1=-2, dim2=-1).unflatten(-1, (rows, columns))
    return FrequencyResponse(gain, same)


def attention_response(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> dict[str, FrequencyResponse]:
    """The mean response of every head between patches, ``[heads, rows, columns]``, by block."""
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    tokens = same_tokens(at)
    totals, count = [torch.zeros(2, x.heads, *tokens.grid).double() for x in at], 0
    for batch in attention_weights(model, stream, at):
        where = torch.tensor(tokens.where, device=batch[0].device)
        for total, weights in zip(totals, batch, strict=True):
            between = weights.index_select(2, where).index_select(3, where).double()
            response = frequency_response(between / between.sum(-1, keepdim=True), tokens.grid)
            total += torch.stack([response.gain.sum(0), response.same.sum(0)]).cpu()
        count += len(batch[0])
    named = zip(at, totals, strict=True)
    return {layout.name: FrequencyResponse(*(total / count)) for layout, total in named}


def gaussian_smoothing(grid: Grid, width: float) -> Float64[Tensor, "patches patches"]:
    """Gaussian weights of standard deviation ``width``, in patches; rows sum to 1."""
    rows, columns = rows_and_columns(grid)
    places = torch.cartesian_prod(torch.arange(float(rows)), torch.arange(float(columns))).double()
    squares = (places[:, None] - places).square().sum(-1)  # [patches, patches]
    if width == 0:
        return (squares == 0).double()
    return (squares / -2 / width / width).softmax(-1)


def between_patches(
    model: nn.Module,
    images: Tensor,
    weights: Shaped[Tensor, "*heads patches patches"],
    *,
    grid: Grid | None = None,
) -> dict[str, Callable[[Tensor], Tensor]]:
    """For :func:`~minivit.replacing.replace`: patches average the patches by fixed weights::

        with minivit.replace(vit, between_patches(vit, images, gaussian_smoothing((8, 8), 1.0))):
            vit(images)

    Weights are the same for all heads or a matrix for each. Other tokens' attention stays.
    """

    def put(layout: Layout, own: Tensor) -> Tensor:  # [images, heads, tokens, tokens]
        where = torch.tensor(layout.where, device=own.device)
        new = own.clone()
        new[..., where, :] = 0
        new[..., where[:, None], where] = weights.to(own)
        return new

    at = layouts(model, images, grid)
    return {weights_of(layout.name): partial(put, layout) for layout in at}


def mean_attention(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 64
) -> dict[str, Float64[Tensor, "1 heads tokens tokens"]]:
    """Mean attention weights over images, by name, for :func:`~minivit.replacing.replace`."""
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    totals, count = [torch.zeros(x.heads, x.tokens, x.tokens).double() for x in at], 0
    for batch in attention_weights(model, stream, at):
        for total, weights in zip(totals, batch, strict=True):
            total += weights.double().sum(0).cpu()
        count += len(batch[0])
    named = zip(at, totals, strict=True)
    return {weights_of(layout.name): total[None] / count for layout, total in named}
