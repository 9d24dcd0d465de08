"""Generated images of a textured shape among clutter, with a mask of the shape's pixels.

Each of ten shapes has its typical texture; where they disagree, images show which one a model
goes by (Geirhos et al. 2019, "ImageNet-trained CNNs are biased towards texture").
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from minivit.patches import pair
from minivit.shapes import Size
from vitlab.calls import expect
from vitlab.data.patterns import OUTLINES, TEXTURES, Function

CLASSES = tuple(OUTLINES)
CHUNK = 250  # images drawn at a time, as many of each class
PIECES = 5  # of clutter in an image


@dataclass(frozen=True)
class Shapes:
    """Generated images of shapes, ``labels``, with the typical textures of others, ``textures``.

    Both are indices into ``CLASSES``. ``masks`` are the label + 1, and 0 for the background.
    """

    images: UInt8[Tensor, "batch 3 height width"]
    labels: Int64[Tensor, " batch"]
    textures: Int64[Tensor, " batch"]
    masks: UInt8[Tensor, "batch height width"]


def draw_shapes(n: int, size: Size = 32, *, seed: int = 0, typical: float = 0.7) -> Shapes:
    """Draws images of one textured object, on a textured ground with five pieces of clutter.

    Each 250 images have 25 of each class, in random order. The first are the same whatever ``n``
    is, and larger ones show the same in more detail. ``typical`` is the fraction of objects with
    the texture of their own class: with 0.1 the texture says nothing.
    """
    height, width = pair(size)
    fits = n > 0 and 16 <= min(height, width) <= max(height, width) <= 128
    expect(fits, "at least one image, 16 to 128 pixels each way", f"{n} of {size}")
    seeds = [seed * 1_000_003 + i for i in range(math.ceil(n / CHUNK))]
    chunks = [_chunk(_Canvas(height, width, seed), typical) for seed in seeds]
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
