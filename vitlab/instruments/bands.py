"""Images and noise whose waves lie in one band of frequencies.

Frequencies are in cycles per pixel: 0 is constant, 0.5 the fastest along an axis, 0.71 a
chequerboard. A band ``low <= frequency < high`` holds its lower end and not its upper one, so that
neighbouring bands share no wave.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from minivit.patches import pair
from minivit.shapes import Size
from vitlab.instruments.frequency import frequencies


def band_pass(
    images: Float[Tensor, "*batch height width"], low: float, high: float = math.inf
) -> Float[Tensor, "*batch height width"]:
    """The waves of images in a band; the constant wave, the mean, has frequency 0.

    Raises:
        ValueError: The band is empty or not one, or the images have no floating numbers.
    """
    if not images.is_floating_point() or images.ndim < 2:
        raise ValueError(
            "expected images of floating numbers [..., height, width]: got "
            f"{images.dtype} {list(images.shape)}"
        )
    inside = _band((images.shape[-2], images.shape[-1]), low, high).to(images.device)
    waves = torch.fft.fft2(images.double()) * inside
    return torch.fft.ifft2(waves).real.to(images.dtype)


def low_pass(
    images: Float[Tensor, "*batch height width"], cutoff: float
) -> Float[Tensor, "*batch height width"]:
    """The waves below a frequency, the mean among them."""
    return band_pass(images, 0, cutoff)


def high_pass(
    images: Float[Tensor, "*batch height width"], cutoff: float
) -> Float[Tensor, "*batch height width"]:
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
    """Gaussian noise in a band, of equal power in every image.

    Noise of equal power disturbs pixels equally, whatever its band. In white noise most power is at
    high frequencies, where most waves are.

    Args:
        power: The mean square of each image's numbers.

    Raises:
        ValueError: The band holds no wave of images of this size, or power is negative.
    """
    height, width = pair(size)
    if n < 1 or channels < 1 or not 0 <= power < math.inf:
        raise ValueError(
            f"expected n and channels, and power from 0 on: got {n}, {channels}, {power}"
        )
    generator = torch.Generator().manual_seed(seed)
    white = torch.randn(n, channels, height, width, generator=generator, dtype=torch.float64)
    noise = band_pass(white, low, high)
    size_of = noise.square().mean((1, 2, 3), keepdim=True).sqrt()
    return (noise * (math.sqrt(power) / size_of)).float()


def _band(grid: tuple[int, int], low: float, high: float) -> Tensor:
    """Which waves of ``fft2`` are in the band."""
    if not 0 <= low < high:
        raise ValueError(f"expected 0 <= low < high in cycles per pixel: got {low}, {high}")
    frequency = frequencies(grid)
    slack = 1e-9  # of rounding, at an edge
    inside = (frequency >= low - slack) & (frequency < high - slack)
    if not inside.any():
        raise ValueError(
            f"images of {grid[0]} x {grid[1]} pixels have no wave from {low} to {high} cycles per "
            "pixel"
        )
    return inside
