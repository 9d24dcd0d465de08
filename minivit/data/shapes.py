"""A generator of pictures with a shape, a texture and clutter, and with the shape's pixels known.

There are ten shapes and ten textures. Each shape has its typical texture, so a model can tell the
classes by either; where the two disagree, the pictures show which one it goes by (cue conflict,
Geirhos et al. 2019, "ImageNet-trained CNNs are biased towards texture").
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minivit.data.outlines import OUTLINES
from minivit.data.textures import TEXTURES
from minivit.networks.patches import pair
from minivit.networks.shapes import Size

Function = Callable[[Tensor, Tensor], Tensor]
CLASSES = tuple(outline.__name__ for outline in OUTLINES)
CHUNK = 250  # pictures drawn at a time, as many of each class
PIECES = 5  # of clutter in a picture


@dataclass(frozen=True)
class Shapes:
    """Generated pictures.

    Args:
        images: uint8 ``[n, 3, height, width]``.
        labels: int64 ``[n]``: the shape, a place in ``CLASSES``.
        textures: int64 ``[n]``: the class that the object's texture is typical of.
        masks: uint8 ``[n, height, width]``: 0 for the background, the shape's label + 1 for it.
    """

    images: Tensor
    labels: Tensor
    textures: Tensor
    masks: Tensor


def draw_shapes(n: int, size: Size = 32, *, seed: int = 0, typical: float = 0.7) -> Shapes:
    """Draws pictures of textured shapes.

    Each shows one object, whole or nearly so, before a textured ground and five pieces of smaller
    shapes that are textured too. Place, scale, slant, colours, contrast and noise vary. Of every
    250 pictures 25 are of each class, in a random order.

    Args:
        n: How many. The first ones are the same whatever ``n`` is.
        size: Height and width in pixels, or one number for both, 16 to 128 each. The same pictures
            are drawn finer, but for their noise. Default: 32.
        seed: Another one gives other pictures. The same one gives the same to the last bit on one
            machine; on others a colour may differ by a step.
        typical: Share of the pictures whose object has the texture of its class; the others have
            one of another class. With 0 the cues conflict in every picture, with 0.1 the texture
            says nothing about the class. The rest of the picture stays the same. Default: 0.7.

    Raises:
        ValueError: A setting is out of range.
    """
    height, width = pair(size)
    if n < 1 or not 16 <= min(height, width) <= max(height, width) <= 128:
        raise ValueError(
            f"expected one picture or more, 16 to 128 pixels each way: got {n} of {size}"
        )
    if not 0 <= typical <= 1:
        raise ValueError(f"expected typical, a share, from 0 to 1: got {typical}")
    seeds = [seed * 1_000_003 + i for i in range(math.ceil(n / CHUNK))]
    chunks = [_chunk(_Canvas(height, width, each), typical) for each in seeds]
    return Shapes(*(torch.cat(parts)[:n] for parts in zip(*chunks, strict=True)))


class _Canvas:
    """Random numbers and drawing for a chunk of pictures; the shorter side has length 1."""

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
        """Every pixel's coordinates, ``[n, height, width]``, where a length is ``scale``."""
        x, y = self.x - centre[:, :1, None], self.y - centre[:, 1:, None]
        cos, sin = (angle.cos() / scale)[:, None, None], (angle.sin() / scale)[:, None, None]
        return cos * x + sin * y, cos * y - sin * x

    def cover(self, distance: Tensor, scale: Tensor) -> Tensor:
        """How much of each pixel an outline covers, 0 to 1: ``[n, 1, height, width]``."""
        return (0.5 - distance * (scale * self.side)[:, None, None]).clamp(0, 1)[:, None]

    def texture(self, kinds: Tensor) -> Tensor:
        """Textures of these kinds at a random place, angle and scale: ``[n, 1, height, width]``."""
        period = self.uniform(0.11, 0.19)
        u, v = self.frame(self.uniform(-4, 4, 2), self.uniform(0, 2 * math.pi), period)
        return _by_kind(TEXTURES, kinds, u, v)[:, None]

    def paint(self, texture: Tensor, lightness: Tensor, contrast: Tensor) -> Tensor:
        """A texture in two random colours, ``[n, 3, height, width]``, apart by ``contrast``."""
        hue, chroma = self.uniform(0, 1, 2, 1), self.uniform(0, 0.2, 2, 1)
        third = torch.arange(3) / 3
        tint = chroma * torch.cos(2 * math.pi * (hue + third))  # [n, 2, 3], no lighter or darker
        step = torch.tensor([-0.5, 0.5]) * contrast[:, None]
        dark, bright = ((lightness[:, None] + step)[..., None] + tint).unbind(1)
        return torch.lerp(dark[..., None, None], bright[..., None, None], texture)


def _by_kind(functions: Sequence[Function], kinds: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """For each picture what the function of its kind gives."""
    out = torch.empty_like(u)
    for kind, function in enumerate(functions):
        mine = (kinds == kind).nonzero()[:, 0]
        out[mine] = function(u[mine], v[mine])
    return out


def _chunk(canvas: _Canvas, typical: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    kinds = len(CLASSES)
    labels = torch.randperm(CHUNK, generator=canvas.generator) % kinds
    others = (labels + 1 + canvas.one_of(kinds - 1)) % kinds
    textures = torch.where(canvas.uniform(0, 1) < typical, labels, others)

    ground = canvas.uniform(0.2, 0.8)
    picture = canvas.paint(canvas.texture(canvas.one_of(kinds)), ground, canvas.uniform(0, 0.12))
    # All pieces of a picture are cut from one sheet of texture, which they show in their colours.
    sheet = canvas.texture(canvas.one_of(kinds))
    for _ in range(PIECES):
        scale, angle = canvas.uniform(0.12, 0.2), canvas.uniform(0, 2 * math.pi)
        centre = canvas.uniform(-1, 1, 2) * canvas.room
        u, v = canvas.frame(centre, angle, scale)
        half = torch.maximum(_by_kind(OUTLINES, canvas.one_of(kinds), u, v), u)
        colours = canvas.paint(sheet, canvas.uniform(0.1, 0.9), canvas.uniform(0.1, 0.5))
        picture = torch.lerp(picture, colours, canvas.cover(half, scale))

    scale, angle = canvas.uniform(0.36, 0.56), canvas.uniform(-0.4, 0.4)
    centre = canvas.uniform(-1, 1, 2) * (canvas.room - 0.75 * scale[:, None])
    cover = canvas.cover(_by_kind(OUTLINES, labels, *canvas.frame(centre, angle, scale)), scale)
    lightness = 0.2 + (ground - 0.2 + canvas.uniform(0.25, 0.35)) % 0.6  # unlike the ground
    colours = canvas.paint(canvas.texture(textures), lightness, canvas.uniform(0.2, 0.4))
    picture = torch.lerp(picture, colours, cover)

    noise = torch.randn(picture.shape, generator=canvas.generator)
    picture = picture + canvas.uniform(0.01, 0.05, 1, 1, 1) * noise
    images = (picture * 255).round().clamp(0, 255).to(torch.uint8)
    masks = (cover[:, 0] >= 0.5) * (labels + 1)[:, None, None]
    return images, labels, textures, masks.to(torch.uint8)
