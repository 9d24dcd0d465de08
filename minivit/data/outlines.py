"""Ten outlines, each a formula that is negative inside and grows about as the distance from it.

All take coordinates ``u`` to the right and ``v`` downwards, of the same shape, and give a tensor of
that shape, with a slope of about 1 near the outline. All enclose an area of about 1.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor


def _disc(u: Tensor, v: Tensor, radius: float) -> Tensor:
    return torch.hypot(u, v) - radius


def _box(u: Tensor, v: Tensor, width: float, height: float) -> Tensor:
    return torch.maximum(u.abs() - width / 2, v.abs() - height / 2)


def disc(u: Tensor, v: Tensor) -> Tensor:
    return _disc(u, v, 0.565)


def ring(u: Tensor, v: Tensor) -> Tensor:
    return _disc(u, v, 0.55).abs() - 0.145


def square(u: Tensor, v: Tensor) -> Tensor:
    return _box(u, v, 1.0, 1.0)


def triangle(u: Tensor, v: Tensor) -> Tensor:
    return torch.maximum(v, math.sqrt(0.75) * u.abs() - v / 2) - 0.44


def star(u: Tensor, v: Tensor) -> Tensor:
    tip, notch, tenth = 0.9, 0.378, math.pi / 5
    angle = torch.atan2(u, -v)
    angle = (angle - 2 * tenth * torch.round(angle / (2 * tenth))).abs()  # from the nearest tip
    radius = torch.hypot(u, v)
    x, y = radius * torch.cos(angle), radius * torch.sin(angle)  # with that tip on the x axis
    across, along = notch * math.sin(tenth), tip - notch * math.cos(tenth)  # from tip to notch
    return (across * (x - tip) + along * y) / math.hypot(across, along)


def cross(u: Tensor, v: Tensor) -> Tensor:
    return torch.minimum(_box(u, v, 0.42, 1.4), _box(u, v, 1.4, 0.42))


def heart(u: Tensor, v: Tensor) -> Tensor:
    diamond = (u.abs() + v.abs() - 0.53) / math.sqrt(2)
    return torch.minimum(diamond, _disc(u.abs() - 0.265, v + 0.265, 0.375))


def crescent(u: Tensor, v: Tensor) -> Tensor:
    return torch.maximum(_disc(u + 0.12, v, 0.77), -_disc(u - 0.3, v, 0.59))


def arrow(u: Tensor, v: Tensor) -> Tensor:
    length, width = 0.92, 0.7  # of the head, and half of its base
    sides = (length * u.abs() - width * (v + 0.88)) / math.hypot(length, width)
    return torch.minimum(torch.maximum(sides, v - 0.04), _box(u, v - 0.4, 0.42, 0.96))


def hourglass(u: Tensor, v: Tensor) -> Tensor:
    sides = (0.75 * u.abs() - 0.55 * v.abs()) / math.hypot(0.75, 0.55) - 0.047
    return torch.maximum(sides, v.abs() - 0.75)


OUTLINES: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    disc, ring, square, triangle, star, cross, heart, crescent, arrow, hourglass,
)  # fmt: skip
