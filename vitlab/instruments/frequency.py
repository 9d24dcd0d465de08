"""How fast feature maps change from place to place: the amplitude of every wave in them.

The relative log amplitude is that of Park & Kim (2022), "How Do Vision Transformers Work?", figures
2 and 8: the mean logarithm of the amplitude of a wave, less that of the constant wave. A number
that is added to all places of a map changes the constant wave alone, and with it all that is
relative to it; ``tilt`` leaves the constant wave out.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from vitlab.instruments.grids import Grid

FLOOR = 1e-6  # added to an amplitude before its logarithm, as Park and Kim do
HIGH = 0.25  # cycles per position: half of the fastest change along an axis


def frequencies(grid: Grid) -> Float64[Tensor, "rows columns"]:
    """How fast each wave of ``fft2`` changes, in cycles per position or pixel.

    From 0, for the constant wave, to 0.71, for a chequerboard.
    """
    down, across = (torch.fft.fftfreq(n, dtype=torch.float64) for n in grid)
    return torch.hypot(down[:, None], across)


def rings(grid: Grid) -> Float64[Tensor, "rows columns"]:
    """The ring of each wave of ``fft2``: its cycles along the shorter side, to the nearest whole.

    Ring 0 is the constant wave. Those beyond half the side lie in the corners, and are incomplete.
    """
    return torch.floor(frequencies(grid) * min(grid) + 0.5 + 1e-9)


@dataclass(frozen=True, eq=False)
class LogAmplitude:
    """The mean logarithm of the amplitude of every wave in feature maps, ordered as ``fft2``'s."""

    values: Float64[Tensor, "rows columns"]

    @property
    def relative(self) -> Float64[Tensor, "rows columns"]:
        """Minus that of the constant wave."""
        return self.values - self.values[0, 0]

    @property
    def diagonal(self) -> Float64[Tensor, "bins"]:
        """Relative log amplitudes along half of the diagonal, the bins of Park and Kim.

        Bin ``k`` has ``k`` cycles along both sides. Of a map of even side ``n`` the last has
        ``n / 2 - 1``: the waves with ``n / 2`` are left out.

        Raises:
            ValueError: The maps are not square.
        """
        rows, columns = self.values.shape
        if rows != columns:
            raise ValueError(f"only square maps have this diagonal: got {rows} x {columns}")
        return self.relative.diagonal()[: (rows + 1) // 2]

    @property
    def radial(self) -> Float64[Tensor, "rings"]:
        """Relative log amplitudes, averaged over the waves of each of the :func:`rings`."""
        rows, columns = self.values.shape
        ring = rings((rows, columns)).long().to(self.values.device).flatten()
        total = self.values.new_zeros(int(ring.max()) + 1)
        return total.index_add(0, ring, self.relative.flatten()) / ring.bincount()

    @property
    def high(self) -> Float64[Tensor, ""]:
        """The mean relative log amplitude of the waves of 0.25 cycles per position or more."""
        return self.relative[self._fast].mean()

    @property
    def tilt(self) -> Float64[Tensor, ""]:
        """The mean log amplitude of those waves, less that of the slower ones but the constant."""
        slow = ~self._fast
        slow[0, 0] = False
        return self.values[self._fast].mean() - self.values[slow].mean()

    @property
    def _fast(self) -> Tensor:
        rows, columns = self.values.shape
        return (frequencies((rows, columns)) > HIGH - 1e-9).to(self.values.device)


def log_amplitude(maps: Float[Tensor, "batch channels rows columns"]) -> LogAmplitude:
    """The log amplitudes of feature maps, averaged over images and channels.

    Raises:
        ValueError: There are no maps, or they have no two rows and columns.
    """
    if maps.ndim != 4 or not maps.numel() or min(maps.shape[2:]) < 2:
        raise ValueError(
            "expected maps [batch, channels, rows, columns], two positions or more each way: got "
            f"{list(maps.shape)}"
        )
    amplitude = torch.fft.fft2(maps.detach().double()).abs()
    return LogAmplitude((amplitude + FLOOR).log().mean((0, 1)))
