"""The discrete cosine transform: what is slow and what is fast along an axis that has ends.

The Fourier transform takes an axis for a circle, and a slope for a jump from the last place to the
first. The cosine transform of Ahmed, Natarajan & Rao (1974) mirrors it at its ends instead.
"""

import math

import torch
from torch import Tensor


def dct_matrix(length: int) -> Tensor:
    r"""The orthonormal cosine transform of a sequence (DCT-II), as a matrix.

    Row :math:`u` is the wave :math:`\cos(\pi u (t + 1/2) / n)`, which makes :math:`u` half turns
    from end to end, scaled to length 1.

    Args:
        length: :math:`n`, 1 or more.

    Returns:
        ``[length, length]``, float64: a wave in each row, slow ones first.
    """
    t = torch.arange(length, dtype=torch.float64)
    waves = torch.cos(math.pi * t[:, None] * (t + 0.5) / length)
    return waves / waves.norm(dim=1, keepdim=True)


def dct2(x: Tensor) -> Tensor:
    """The cosine transform along the first two axes, ``[rows, columns, ...]``, in float64."""
    down, across = (dct_matrix(n).to(x.device) for n in x.shape[:2])
    return torch.einsum("ur,vc,rc...->uv...", down, across, x.double())


def cosine_basis(channels: int, size: tuple[int, int]) -> Tensor:
    """The two-dimensional discrete cosine transform's basis, in grey, slow waves first.

    For patches of natural pictures it is close to the principal components.

    Args:
        channels: Each wave is the same in all of them.
        size: Height and width.

    Returns:
        ``[height * width, channels, height, width]``, each of length 1, float64. Sorted by the sum
        of the squared frequencies along both sides, in cycles a pixel.
    """
    down, across = (dct_matrix(n) for n in size)
    waves = torch.einsum("uh,vw->uvhw", down, across).flatten(0, 1)  # [height * width, h, w]
    u, v = (torch.arange(n) / n for n in size)
    order = (u[:, None] ** 2 + v**2).flatten().argsort(stable=True)
    return waves[order, None].repeat(1, channels, 1, 1) / channels**0.5
