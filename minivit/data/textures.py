"""Ten textures, each a formula for how bright a point of the plane is.

All take coordinates ``u`` and ``v`` of the same shape, in which the pattern has a period of about
1, and give values from 0 to 1 of that shape.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

LATTICE = torch.rand(64, 64, generator=torch.Generator().manual_seed(0))


def _soft(x: Tensor) -> Tensor:
    """From a wave between -1 and 1 to values between 0 and 1, most of them near the ends."""
    return 0.5 + 0.5 * torch.tanh(3 * x)


def _wave(x: Tensor) -> Tensor:
    return torch.sin(2 * math.pi * x)


def stripes(u: Tensor, v: Tensor) -> Tensor:
    return _soft(_wave(u))


def checks(u: Tensor, v: Tensor) -> Tensor:
    return _soft(1.5 * _wave(u / 1.5) * _wave(v / 1.5))


def dots(u: Tensor, v: Tensor) -> Tensor:
    return _soft(0.6 + _wave(u / 1.2) + _wave(v / 1.2))


def grid(u: Tensor, v: Tensor) -> Tensor:
    return _soft(torch.maximum(_wave(u / 1.4), _wave(v / 1.4)) - 0.6)


def bricks(u: Tensor, v: Tensor) -> Tensor:
    row = torch.floor(v)
    u = u + row  # half a brick further in every row
    from_end, from_edge = 1 - (u - 2 * torch.floor(u / 2) - 1).abs(), 0.5 - (v - row - 0.5).abs()
    return _soft(8 * (torch.minimum(from_end, from_edge) - 0.15))


def zigzag(u: Tensor, v: Tensor) -> Tensor:
    return _soft(_wave(u + 1.2 * (v / 2 - torch.floor(v / 2) - 0.5).abs()))


def ripples(u: Tensor, v: Tensor) -> Tensor:
    return _soft(_wave(torch.hypot(u - 3 * torch.round(u / 3), v - 3 * torch.round(v / 3))))


def blotches(u: Tensor, v: Tensor) -> Tensor:
    i, j = torch.floor(u), torch.floor(v)
    a, b = u - i, v - j
    a, b = a * a * (3 - 2 * a), b * b * (3 - 2 * b)  # level at the corners
    rows = [_lattice(i, j + k) * (1 - a) + _lattice(i + 1, j + k) * a for k in (0, 1)]
    return _soft(3 * (rows[0] * (1 - b) + rows[1] * b - 0.5))


def grain(u: Tensor, v: Tensor) -> Tensor:
    return _lattice(torch.floor(4 * u), torch.floor(4 * v))


def shade(u: Tensor, v: Tensor) -> Tensor:
    return 0.5 + 0.5 * _wave(u / 5)


def _lattice(i: Tensor, j: Tensor) -> Tensor:
    """A random number for each point with whole coordinates."""
    return LATTICE[i.long() % 64, j.long() % 64]


TEXTURES: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    stripes, checks, dots, grid, bricks, zigzag, ripples, blotches, grain, shade,
)  # fmt: skip
