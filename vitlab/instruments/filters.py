"""What the first layer looks for: its filters as images, their components, norms and spectra."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Shaped
from torch import Tensor, nn

from minivit.patches import pair, patchify
from minivit.shapes import Grid, Size
from vitlab.instruments.frequency import frequencies
from vitlab.instruments.running import expect


def first_filters(model: nn.Module) -> Float[Tensor, "filters channels height width"]:
    """A copy of the weights of a model's first convolution, such as a patch embedding."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            return module.weight.detach().clone()
    name = type(model).__name__
    raise TypeError(f"expected a convolution, whose weights can be shown as images: got {name}")


def cut_patches(
    images: Shaped[Tensor, "batch channels height width"], patch_size: Size
) -> Shaped[Tensor, "patches channels patch_height patch_width"]:
    """All patches of all images, as small images."""
    return patchify(images, patch_size).reshape(-1, images.shape[1], *pair(patch_size))


@dataclass(frozen=True, eq=False)
class Components:
    """Orthonormal images, the most important first."""

    pictures: Float64[Tensor, "components channels height width"]
    variance: Float64[Tensor, "components"]


def principal_components(pictures: Float[Tensor, "batch channels height width"]) -> Components:
    """The directions in which images, or filters, differ most from their mean.

    There are at most ``batch - 1``. The largest entry of each is positive.
    """
    flat = pictures.detach().double().flatten(1)
    centred = flat - flat.mean(0)
    rounding = flat.numel() ** 0.5 * torch.finfo(flat.dtype).eps * flat.norm()
    expect(centred.norm() > rounding, "images of finite numbers that differ", list(pictures.shape))
    small = torch.linalg.qr(centred, mode="r").R  # there may be a million patches
    _, s, basis = torch.linalg.svd(small, full_matrices=False)
    k = min(len(flat) - 1, flat.shape[1])
    basis, variance = basis[:k], s[:k] ** 2 / (len(flat) - 1)
    largest = basis.gather(1, basis.abs().argmax(1, keepdim=True))
    return Components((basis * largest.sign()).unflatten(1, pictures.shape[1:]), variance)


def subspace_overlap(
    a: Float[Tensor, "a channels height width"], b: Float[Tensor, "b channels height width"]
) -> Float64[Tensor, ""]:
    """The mean squared cosine of the principal angles between two spaces of orthonormal images: 1
    if the first lies in the second; at random ``b`` over all dimensions.
    """
    left, right = (images.detach().double().flatten(1) for images in (a, b))
    for basis in left, right:
        off = (basis @ basis.mT - torch.eye(len(basis)).to(basis)).abs().max()
        expect(off <= 1e-6, "orthonormal images, such as principal components", f"{off:.2g} off")
    return (left @ right.mT).square().sum() / len(left)


def dct_matrix(length: int) -> Float64[Tensor, "length length"]:
    """The orthonormal discrete cosine transform (DCT-II) of Ahmed, Natarajan & Rao (1974)."""
    t = torch.arange(length, dtype=torch.float64)
    waves = torch.cos(math.pi * t[:, None] * (t + 0.5) / length)
    return waves / waves.norm(dim=1, keepdim=True)


def dct2(x: Float[Tensor, "rows columns *rest"]) -> Float64[Tensor, "rows columns *rest"]:
    """The discrete cosine transform along the first two axes."""
    down, across = (dct_matrix(n).to(x.device) for n in x.shape[:2])
    return torch.einsum("ur,vc,rc...->uv...", down, across, x.double())


def cosine_basis(channels: int, size: Grid) -> Float64[Tensor, "components channels height width"]:
    """The basis of the two-dimensional cosine transform as grey images, low frequencies first."""
    down, across = (dct_matrix(n) for n in size)
    waves = torch.einsum("uh,vw->uvhw", down, across).flatten(0, 1)  # [height * width, h, w]
    u, v = (torch.arange(n) / n for n in size)
    order = (u[:, None] ** 2 + v**2).flatten().argsort(stable=True)
    return waves[order, None].repeat(1, channels, 1, 1) / channels**0.5


@dataclass(frozen=True, eq=False)
class FilterSpectra:
    """Norm and Fourier spectrum of every filter."""

    norms: Float64[Tensor, "filters"]
    power: Float64[Tensor, "filters height width"]  # fraction at each frequency, ordered as fft2's
    waves: Float64[Tensor, "filters"]  # how many waves make up a filter: the participation ratio
    noise: Float64[Tensor, "draws"]  # the same for filters of white noise, sorted

    def structured(self, level: float = 0.01) -> Bool[Tensor, "filters"]:
        """Which filters have fewer waves than all but a fraction ``level`` of noise filters."""
        return self.waves < torch.quantile(self.noise, level)

    @property
    def frequency(self) -> Float64[Tensor, "filters"]:
        """The mean frequency of each filter, weighted by power, in cycles per pixel."""
        rows, columns = self.power.shape[1:]
        return (self.power * frequencies((rows, columns)).to(self.power)).sum((1, 2))


def filter_spectra(filters: Float[Tensor, "filters channels height width"]) -> FilterSpectra:
    """Measures norm and pattern of filters, next to 2000 filters of white noise.

    With ``p`` the fractions of power, ``1 / sum p²`` waves make a filter.
    """
    filters = filters.detach().double()
    norms = filters.flatten(1).norm(dim=1)
    fits = filters[0, 0].numel() > 1 and norms.isfinite().all() and norms.all()
    expect(fits, "finite filters of two pixels or more, none of them zero", list(filters.shape))
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(2000, *filters.shape[1:], dtype=torch.float64, generator=generator)
    power = _power(filters)
    return FilterSpectra(norms, power, _waves(power), _waves(_power(noise)).sort().values)


def _power(filters: Tensor) -> Float64[Tensor, "filters height width"]:
    power = torch.fft.fft2(filters).abs().square().sum(1)
    return power / power.sum((1, 2), keepdim=True)


def _waves(power: Float64[Tensor, "filters height width"]) -> Float64[Tensor, "filters"]:
    """The participation ratio of waves; most waves appear at two frequencies."""
    index = torch.arange(power[0].numel(), device=power.device).view(power.shape[1:])
    mirror = index.flip(0, 1).roll((1, 1), (0, 1))  # where frequency -f stands, for each f
    both = power + power.flatten(1)[:, mirror]
    square = torch.where(index == mirror, power**2, both**2 / 2)  # a pair is met twice
    return 1 / square.sum((1, 2))
