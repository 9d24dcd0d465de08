"""The waves in images and feature maps: how fast each changes, its amplitude, bands of them.

Frequencies are in cycles per pixel, or position: 0 is constant, 0.5 the fastest along an axis,
0.71 a chequerboard. Relative log amplitudes are those of Park & Kim (2022), figures 2 and 8.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from minivit.patches import pair
from minivit.shapes import Size
from vitlab.instruments.grids import Grid
from vitlab.instruments.running import expect

FLOOR = 1e-6  # added to an amplitude before its logarithm, as Park and Kim do
HIGH = 0.25  # cycles per position: half of the fastest change along an axis
ROUNDING = 1e-9  # at an edge of a band or a ring
Maps = Float[Tensor, "*batch height width"]


def frequencies(grid: Grid) -> Float64[Tensor, "rows columns"]:
    """How fast each wave of ``fft2`` changes, in cycles per position or pixel, from 0 to 0.71."""
    down, across = (torch.fft.fftfreq(n, dtype=torch.float64) for n in grid)
    return torch.hypot(down[:, None], across)


def rings(grid: Grid) -> Float64[Tensor, "rows columns"]:
    """The ring of each wave of ``fft2``: its cycles along the shorter side, rounded."""
    return torch.floor(frequencies(grid) * min(grid) + 0.5 + ROUNDING)


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
        """Relative log amplitudes on half of the diagonal of square maps, Park and Kim's bins."""
        rows, columns = self.values.shape
        expect(rows == columns, "a square map, which has this diagonal", f"{rows} x {columns}")
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
        fast = frequencies((self.values.shape[0], self.values.shape[1])) > HIGH - ROUNDING
        return fast.to(self.values.device)


def log_amplitude(maps: Float[Tensor, "batch channels rows columns"]) -> LogAmplitude:
    """The log amplitudes of the Fourier transform of maps, averaged over images and channels."""
    fits = maps.numel() > 0 and min(maps.shape[2:]) > 1
    expect(fits, "maps with two positions or more each way", list(maps.shape))
    amplitude = torch.fft.fft2(maps.detach().double()).abs()
    return LogAmplitude((amplitude + FLOOR).log().mean((0, 1)))


def band_pass(images: Maps, low: float, high: float = math.inf) -> Maps:
    """The waves of images from ``low`` to below ``high``, in cycles per pixel."""
    height, width = images.shape[-2:]
    frequency = frequencies((height, width))
    inside = (frequency >= low - ROUNDING) & (frequency < high - ROUNDING)
    got = f"{low}, {high} cycles per pixel, in {height} x {width} pixels"
    expect(inside.any(), "low < high, with a wave between them", got)
    waves = torch.fft.fft2(images.double()) * inside.to(images.device)
    return torch.fft.ifft2(waves).real.to(images.dtype)


def low_pass(images: Maps, cutoff: float) -> Maps:
    """The waves below a frequency, in cycles per pixel, the mean among them."""
    return band_pass(images, 0, cutoff)


def high_pass(images: Maps, cutoff: float) -> Maps:
    """The waves from a frequency on: what :func:`low_pass` takes away, without the mean."""
    return band_pass(images, cutoff)


def band_noise(
    n: int,
    channels: int,
    size: Size,
    low: float,
    high: float = math.inf,
    *,
    power: float = 1.0,
    seed: int = 0,
) -> Float[Tensor, "batch channels height width"]:
    """``n`` images of Gaussian noise in a band, ``power`` the mean square of each one's numbers."""
    generator = torch.Generator().manual_seed(seed)
    white = torch.randn(n, channels, *pair(size), generator=generator, dtype=torch.float64)
    noise = band_pass(white, low, high)
    strength = noise.square().mean((1, 2, 3), keepdim=True).sqrt()
    return (noise * (math.sqrt(power) / strength)).float()
