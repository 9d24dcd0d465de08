"""The outlines of the ten generated shapes."""

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
