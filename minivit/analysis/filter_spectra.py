"""Which filters have a pattern: how few waves a filter is made of, against filters of noise.

On a scale of its own every filter looks alive. So size and pattern are measured apart: a filter's
norm says how much it can add to a token, its spectrum whether there is a pattern to see.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class FilterSpectra:
    """Size and spectrum of every filter."""

    norms: Tensor  # [filters], float64
    power: Tensor  # [filters, height, width], share of each wave; its rows and columns as fft2's
    waves: Tensor  # [filters], how many waves a filter is made of: the participation ratio
    noise: Tensor  # [draws], the same of filters of white noise of the same shape, sorted

    def structured(self, level: float = 0.01) -> Tensor:
        """Which filters are made of fewer waves than all but a share ``level`` of noise.

        Returns:
            ``[filters]``, true or false. Of filters without a pattern a share ``level`` is true.
        """
        return self.waves < torch.quantile(self.noise, level)

    @property
    def frequency(self) -> Tensor:
        """The mean frequency of each filter, weighted by power, in cycles a pixel, ``[filters]``.

        From 0, for a filter that is even, to 0.71, for a chequerboard.
        """
        return (self.power * _radius(self.power.shape[-2:]).to(self.power)).sum((1, 2))


def filter_spectra(filters: Tensor, *, draws: int = 2000, seed: int = 0) -> FilterSpectra:
    """Measures size and spectrum of filters.

    The spectrum is the squared Fourier transform, summed over channels. A wave and its mirror
    image, which a real filter has alike, count as one. Where ``p`` are the shares of the waves,
    ``1 / sum p²`` says how many there are: 1 for a single wave, and about three quarters of all
    waves for white noise in three channels.

    Args:
        filters: ``[filters, channels, height, width]``.
        draws: Filters of white noise to compare with. Default: 2000.
        seed: For these.

    Raises:
        ValueError: Another shape, filters of one pixel, numbers that are not finite, a filter that
            is zero everywhere, or none to compare with.
    """
    if filters.ndim != 4 or not len(filters) or filters[0, 0].numel() < 2:
        raise ValueError(
            "expected filters [filters, channels, height, width] of two pixels or more: got "
            f"{list(filters.shape)}"
        )
    if draws < 1:
        raise ValueError(f"expected draws of one filter of noise or more: got {draws}")
    filters = filters.detach().double()
    norms = filters.flatten(1).norm(dim=1)
    if not norms.isfinite().all() or not norms.all():
        raise ValueError("expected filters of finite numbers, none of them zero everywhere")
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(draws, *filters.shape[1:], dtype=torch.float64, generator=generator)
    power = _power(filters)
    return FilterSpectra(norms, power, _waves(power), _waves(_power(noise)).sort().values)


def _power(filters: Tensor) -> Tensor:
    """The share of every frequency, ``[filters, height, width]``."""
    power = torch.fft.fft2(filters).abs().square().sum(1)
    return power / power.sum((1, 2), keepdim=True)


def _waves(power: Tensor) -> Tensor:
    """The participation ratio of waves, each of which may stand at two frequencies."""
    place = torch.arange(power[0].numel(), device=power.device).view(power.shape[1:])
    mirror = place.flip(0, 1).roll((1, 1), (0, 1))  # where frequency -f stands, for each f
    both = power + power.flatten(1)[:, mirror]
    square = torch.where(place == mirror, power**2, both**2 / 2)  # a pair is met twice
    return 1 / square.sum((1, 2))


def _radius(size: torch.Size) -> Tensor:
    """How fast each wave is, in cycles a pixel: ``[height, width]``."""
    down, across = (torch.fft.fftfreq(n, dtype=torch.float64) for n in size)
    return (down[:, None] ** 2 + across**2).sqrt()
