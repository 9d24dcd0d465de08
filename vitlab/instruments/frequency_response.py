"""What attention does to each wave on the grid of its tokens.

Attention weights have rows that sum to 1 and no negative entries. So the constant wave passes
unchanged, and no wave gains: every output is a mean of numbers of one size. But a wave may pass
whole, or turn into another: weights that permute the tokens have the gain 1 at every wave. Only the
powers of positive weights must smooth, since they converge to a matrix of equal rows.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from vitlab.instruments.frequency import frequencies
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.layout import attention_weights, layouts, same_tokens
from vitlab.instruments.running import Images, batches, expect


@dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """What becomes of each wave on a grid, ordered as ``fft2``'s; sizes relative to the wave's."""

    gain: Float64[Tensor, "*matrices rows columns"]  # size of the output
    same: Float64[Tensor, "*matrices rows columns"]  # of its part that is still this wave
    constant: Float64[Tensor, "*matrices rows columns"]  # of its part that is constant

    @property
    def frequency(self) -> Float64[Tensor, "rows columns"]:
        """Of each wave, in cycles per position."""
        rows, columns = self.gain.shape[-2:]
        return frequencies((rows, columns))


def frequency_response(
    matrix: Float[Tensor, "*matrices queries keys"], grid: Grid
) -> FrequencyResponse:
    r"""The response of matrices that mix the tokens of a grid to every wave on it.

    A wave is :math:`e^{2\pi i(ur/R + vc/C)} / \sqrt{RC}` at row :math:`r`, column :math:`c`. The
    rows and columns of each matrix are the places in reading order. A convolution whose borders
    wrap around keeps every wave as it is, up to a factor, its transfer function, whose size is
    ``gain`` and ``same`` alike.
    """
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
    return FrequencyResponse(gain, same, parts[..., 0].unflatten(-1, (rows, columns)))


def attention_response(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> dict[str, FrequencyResponse]:
    """The response of every head, ``[heads, rows, columns]``, by block: means over images.

    Of the weights between patches, those rows are divided by their sums, so that other tokens do
    not count. Models and refusals are as for :func:`~vitlab.instruments.rollout.rollout`.
    """
    first, stream = batches(images, batch_size)
    at = layouts(model, first, grid)
    tokens = same_tokens(at)
    totals = [torch.zeros(3, x.heads, *tokens.grid, dtype=torch.float64) for x in at]
    count = 0
    for batch in attention_weights(model, stream, at):
        where = torch.tensor(tokens.where, device=batch[0].device)
        for total, weights in zip(totals, batch, strict=True):
            between = weights.index_select(2, where).index_select(3, where).double()
            response = frequency_response(between / between.sum(-1, keepdim=True), tokens.grid)
            parts = (response.gain, response.same, response.constant)
            total += torch.stack([part.sum(0).cpu() for part in parts])
        count += len(batch[0])
    named = zip(at, totals, strict=True)
    return {layout.name: FrequencyResponse(*(total / count)) for layout, total in named}
