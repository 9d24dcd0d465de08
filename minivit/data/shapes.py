"""Generated images of a textured shape among clutter, with a mask of the shape's pixels.

There are ten shapes and ten textures. Each shape has its typical texture, so a model can tell the
classes by either; where the two disagree, the images show which one it goes by (cue conflict,
Geirhos et al. 2019, "ImageNet-trained CNNs are biased towards texture").
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from minivit.networks.patches import pair
from minivit.networks.shapes import Size

Function = Callable[[Tensor, Tensor], Tensor]  # of coordinates u, to the right, and v, downwards
CHUNK = 250  # images drawn at a time, as many of each class
PIECES = 5  # of clutter in an image


@dataclass(frozen=True)
class Shapes:
    """Generated images.

    Args:
        labels: The shape, an index into ``CLASSES``.
        textures: The class whose typical texture the object has.
        masks: 0 for the background, and the label + 1 for the object.
    """

    images: UInt8[Tensor, "batch 3 height width"]
    labels: Int64[Tensor, " batch"]
    textures: Int64[Tensor, " batch"]
    masks: UInt8[Tensor, "batch height width"]


def draw_shapes(n: int, size: Size = 32, *, seed: int = 0, typical: float = 0.7) -> Shapes:
    """Draws images of one textured object, on a textured ground with five pieces of clutter.

    Position, scale, angle, colours, contrast and noise vary. Each 250 images have 25 of each class,
    in random order. The first images are the same whatever ``n`` is, and to the last bit on one
    machine; on another a colour may differ by one level.

    Args:
        size: Height and width in pixels, 16 to 128 each. A larger one shows the same images in more
            detail, but for their noise.
        typical: The fraction of objects with the texture of their own class; the others have that
            of another class. With 0 the cues conflict in every image, with 0.1 the texture tells
            nothing about the class. The rest of the image does not depend on it.

    Raises:
        ValueError: A setting is out of range.
    """
    height, width = pair(size)
    if n < 1 or not 16 <= min(height, width) <= max(height, width) <= 128:
        raise ValueError(
            f"expected at least one image, 16 to 128 pixels each way: got {n} of {size}"
        )
    if not 0 <= typical <= 1:
        raise ValueError(f"expected typical, a fraction, from 0 to 1: got {typical}")
    seeds = [seed * 1_000_003 + i for i in range(math.ceil(n / CHUNK))]
    chunks = [_chunk(_Canvas(height, width, each), typical) for each in seeds]
    return Shapes(*(torch.cat(parts)[:n] for parts in zip(*chunks, strict=True)))


def _chunk(canvas: "_Canvas", typical: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    kinds = len(CLASSES)
    labels = torch.randperm(CHUNK, generator=canvas.generator) % kinds
    others = (labels + 1 + canvas.one_of(kinds - 1)) % kinds
    textures = torch.where(canvas.uniform(0, 1) < typical, labels, others)

    ground = canvas.uniform(0.2, 0.8)
    image = canvas.paint(canvas.texture(canvas.one_of(kinds)), ground, canvas.uniform(0, 0.12))
    # All pieces of an image are cut from one sheet of texture, each in its own colours.
    sheet = canvas.texture(canvas.one_of(kinds))
    for _ in range(PIECES):
        scale = canvas.uniform(0.12, 0.2)
        angle = canvas.uniform(0, 2 * math.pi)
        u, v = canvas.frame(canvas.uniform(-1, 1, 2) * canvas.room, angle, scale)
        half = torch.maximum(_by_kind(OUTLINES.values(), canvas.one_of(kinds), u, v), u)
        colours = canvas.paint(sheet, canvas.uniform(0.1, 0.9), canvas.uniform(0.1, 0.5))
        image = torch.lerp(image, colours, canvas.cover(half, scale))

    scale = canvas.uniform(0.36, 0.56)
    angle = canvas.uniform(-0.4, 0.4)
    centre = canvas.uniform(-1, 1, 2) * (canvas.room - 0.75 * scale[:, None])
    distance = _by_kind(OUTLINES.values(), labels, *canvas.frame(centre, angle, scale))
    cover = canvas.cover(distance, scale)
    lightness = 0.2 + (ground - 0.2 + canvas.uniform(0.25, 0.35)) % 0.6  # unlike the ground
    colours = canvas.paint(canvas.texture(textures), lightness, canvas.uniform(0.2, 0.4))
    image = torch.lerp(image, colours, cover)

    noise = torch.randn(image.shape, generator=canvas.generator)
    image = image + canvas.uniform(0.01, 0.05, 1, 1, 1) * noise
    images = (image * 255).round().clamp(0, 255).to(torch.uint8)
    masks = (cover[:, 0] >= 0.5) * (labels + 1)[:, None, None]
    return images, labels, textures, masks.to(torch.uint8)


class _Canvas:
    """Random numbers and drawing for a chunk of images, whose shorter side has length 1."""

    def __init__(self, height: int, width: int, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed % 2**32)
        self.side = min(height, width)
        self.room = torch.tensor([width, height]) / self.side / 2  # from the middle to the edges
        across = (torch.arange(width) + 0.5) / self.side - self.room[0]
        down = (torch.arange(height) + 0.5) / self.side - self.room[1]
        self.y, self.x = torch.meshgrid(down, across, indexing="ij")

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(CHUNK, *shape, generator=self.generator)

    def one_of(self, kinds: int) -> Tensor:
        return torch.randint(kinds, (CHUNK,), generator=self.generator)

    def frame(self, centre: Tensor, angle: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Coordinates of every pixel in a turned frame whose unit of length is ``scale``."""
        x = self.x - centre[:, :1, None]
        y = self.y - centre[:, 1:, None]
        cos = (angle.cos() / scale)[:, None, None]
        sin = (angle.sin() / scale)[:, None, None]
        return cos * x + sin * y, cos * y - sin * x

    def cover(self, distance: Tensor, scale: Tensor) -> Tensor:
        """The fraction of each pixel that an outline covers."""
        return (0.5 - distance * (scale * self.side)[:, None, None]).clamp(0, 1)[:, None]

    def texture(self, kinds: Tensor) -> Tensor:
        """Textures of these kinds at a random position, angle and scale."""
        period = self.uniform(0.11, 0.19)
        u, v = self.frame(self.uniform(-4, 4, 2), self.uniform(0, 2 * math.pi), period)
        return _by_kind(TEXTURES.values(), kinds, u, v)[:, None]

    def paint(self, texture: Tensor, lightness: Tensor, contrast: Tensor) -> Tensor:
        """A texture in two random colours whose lightness differs by ``contrast``."""
        hue = self.uniform(0, 1, 2, 1)
        chroma = self.uniform(0, 0.2, 2, 1)
        third = torch.arange(3) / 3
        tint = chroma * torch.cos(2 * math.pi * (hue + third))  # no lighter or darker
        step = torch.tensor([-0.5, 0.5]) * contrast[:, None]
        dark, bright = ((lightness[:, None] + step)[..., None] + tint).unbind(1)
        return torch.lerp(dark[..., None, None], bright[..., None, None], texture)


def _by_kind(functions: Iterable[Function], kinds: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Applies to each image's coordinates the function of its kind."""
    out = torch.empty_like(u)
    for kind, function in enumerate(functions):
        mine = (kinds == kind).nonzero()[:, 0]
        out[mine] = function(u[mine], v[mine])
    return out


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
CLASSES = tuple(OUTLINES)


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
