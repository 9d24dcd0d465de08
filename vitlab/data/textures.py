"""The ten textures of the generated shapes, each the typical one of a shape."""

import math

import torch
from torch import Tensor

from vitlab.data.outlines import Function


def _wave(x: Tensor) -> Tensor:
    return torch.sin(2 * math.pi * x)


def _soft(x: Tensor) -> Tensor:
    """From a wave between -1 and 1 to values between 0 and 1, most of them near the ends."""
    return 0.5 + 0.5 * torch.tanh(3 * x)


def _bricks(u: Tensor, v: Tensor) -> Tensor:
    row = torch.floor(v)
    u = u + row  # half a brick further in every row
    from_end = 1 - (u - 2 * torch.floor(u / 2) - 1).abs()
    from_edge = 0.5 - (v - row - 0.5).abs()
    return _soft(8 * (torch.minimum(from_end, from_edge) - 0.15))


LATTICE = torch.rand(64, 64, generator=torch.Generator().manual_seed(0))


def _lattice(i: Tensor, j: Tensor) -> Tensor:
    """A random number for each point with whole coordinates."""
    return LATTICE[i.long() % 64, j.long() % 64]


def _blotches(u: Tensor, v: Tensor) -> Tensor:
    i, j = torch.floor(u), torch.floor(v)
    a, b = u - i, v - j
    a, b = a * a * (3 - 2 * a), b * b * (3 - 2 * b)  # level at the corners
    rows = [_lattice(i, j + k) * (1 - a) + _lattice(i + 1, j + k) * a for k in (0, 1)]
    return _soft(3 * (rows[0] * (1 - b) + rows[1] * b - 0.5))


# How bright a point is, from 0 to 1, in patterns with a period of about 1.
TEXTURES: dict[str, Function] = {
    "stripes": lambda u, v: _soft(_wave(u)),
    "checks": lambda u, v: _soft(1.5 * _wave(u / 1.5) * _wave(v / 1.5)),
    "dots": lambda u, v: _soft(0.6 + _wave(u / 1.2) + _wave(v / 1.2)),
    "grid": lambda u, v: _soft(torch.maximum(_wave(u / 1.4), _wave(v / 1.4)) - 0.6),
    "bricks": _bricks,
    "zigzag": lambda u, v: _soft(_wave(u + 1.2 * (v / 2 - torch.floor(v / 2) - 0.5).abs())),
    "ripples": lambda u, v: _soft(
        _wave(torch.hypot(u - 3 * torch.round(u / 3), v - 3 * torch.round(v / 3)))
    ),
    "blotches": _blotches,
    "grain": lambda u, v: _lattice(torch.floor(4 * u), torch.floor(4 * v)),
    "shade": lambda u, v: 0.5 + 0.5 * _wave(u / 5),
}
