"""The outlines of the ten generated shapes, and their ten textures."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

Function = Callable[[Tensor, Tensor], Tensor]  # of coordinates u, to the right, and v, downwards


def _disc(u: Tensor, v: Tensor, radius: float) -> Tensor:
    return torch.hypot(u, v) - radius


def _box(u: Tensor, v: Tensor, width: float, height: float) -> Tensor:
    return torch.maximum(u.abs() - width / 2, v.abs() - height / 2)


def _star(u: Tensor, v: Tensor) -> Tensor:
    tip, notch, tenth = 0.9, 0.378, math.pi / 5
    angle = torch.atan2(u, -v)
    angle = (angle - 2 * tenth * torch.round(angle / (2 * tenth))).abs()  # from the nearest tip
    radius = torch.hypot(u, v)
    x, y = radius * torch.cos(angle), radius * torch.sin(angle)  # with that tip on the x axis
    across, along = notch * math.sin(tenth), tip - notch * math.cos(tenth)  # from tip to notch
    return (across * (x - tip) + along * y) / math.hypot(across, along)


def _heart(u: Tensor, v: Tensor) -> Tensor:
    diamond = (u.abs() + v.abs() - 0.53) / math.sqrt(2)
    return torch.minimum(diamond, _disc(u.abs() - 0.265, v + 0.265, 0.375))


def _arrow(u: Tensor, v: Tensor) -> Tensor:
    length, width = 0.92, 0.7  # of the head, and half of its base
    sides = (length * u.abs() - width * (v + 0.88)) / math.hypot(length, width)
    return torch.minimum(torch.maximum(sides, v - 0.04), _box(u, v - 0.4, 0.42, 0.96))


def _hourglass(u: Tensor, v: Tensor) -> Tensor:
    sides = (0.75 * u.abs() - 0.55 * v.abs()) / math.hypot(0.75, 0.55) - 0.047
    return torch.maximum(sides, v.abs() - 0.75)


# Each is negative inside and grows about as the distance, and encloses an area of about 1.
OUTLINES: dict[str, Function] = {
    "disc": lambda u, v: _disc(u, v, 0.565),
    "ring": lambda u, v: _disc(u, v, 0.55).abs() - 0.145,
    "square": lambda u, v: _box(u, v, 1.0, 1.0),
    "triangle": lambda u, v: torch.maximum(v, math.sqrt(0.75) * u.abs() - v / 2) - 0.44,
    "star": _star,
    "cross": lambda u, v: torch.minimum(_box(u, v, 0.42, 1.4), _box(u, v, 1.4, 0.42)),
    "heart": _heart,
    "crescent": lambda u, v: torch.maximum(_disc(u + 0.12, v, 0.77), -_disc(u - 0.3, v, 0.59)),
    "arrow": _arrow,
    "hourglass": _hourglass,
}


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


def _ripples(u: Tensor, v: Tensor) -> Tensor:
    return _soft(_wave(torch.hypot(u - 3 * torch.round(u / 3), v - 3 * torch.round(v / 3))))


# How bright a point is, from 0 to 1; each is the typical one of the shape at its place above.
TEXTURES: dict[str, Function] = {
    "stripes": lambda u, v: _soft(_wave(u)),
    "checks": lambda u, v: _soft(1.5 * _wave(u / 1.5) * _wave(v / 1.5)),
    "dots": lambda u, v: _soft(0.6 + _wave(u / 1.2) + _wave(v / 1.2)),
    "grid": lambda u, v: _soft(torch.maximum(_wave(u / 1.4), _wave(v / 1.4)) - 0.6),
    "bricks": _bricks,
    "zigzag": lambda u, v: _soft(_wave(u + 1.2 * (v / 2 - torch.floor(v / 2) - 0.5).abs())),
    "ripples": _ripples,
    "blotches": _blotches,
    "grain": lambda u, v: _lattice(torch.floor(4 * u), torch.floor(4 * v)),
    "shade": lambda u, v: 0.5 + 0.5 * _wave(u / 5),
}
