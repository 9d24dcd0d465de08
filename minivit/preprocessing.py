"""From an image to a model's input: resized, cropped in the middle, scaled, normalised.

The arithmetic is that of ``weights.transforms()`` in torchvision, to the last bit; here it needs
no torchvision, and sizes need not be square.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from minivit.patches import pair

if TYPE_CHECKING:
    import PIL.Image

Picture: TypeAlias = Union["PIL.Image.Image", Tensor]


def as_shown(image: "PIL.Image.Image") -> "PIL.Image.Image":
    """Turns an image as its EXIF tag says, and lays what is transparent on white.

    Returns:
        The image, as it is where neither is needed; mode RGB where something was transparent.
    """
    from PIL import Image, ImageOps  # here, because `import minivit` loads torch and einops alone

    with suppress(Exception):  # a broken tag says nothing of how the image should stand
        image = ImageOps.exif_transpose(image)
    if not image.has_transparency_data or image.mode[0] in "IF":  # more bits than RGBA has
        return image
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


PIXELS = 64_000_000  # of a resized image: a small file of an extreme shape takes gigabytes
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocess:
    """Turns images into a batch; :func:`dataclasses.replace` makes one with other settings.

    Args:
        size: Height and width that the model takes, in pixels.
        resize: Height and width of the box that an image is resized to just cover, keeping its
            proportions, before its middle ``size`` is cut out. At least ``size``.
        interpolation: "bilinear" or "bicubic", both with antialiasing.
        mean: Taken from the values in [0, 1] of each channel. One entry for grey models, three for
            red, green, blue. Default: ImageNet's.
        std: What the result is divided by, like ``mean``.
        stretch: Whether an image is resized to ``resize`` itself, whatever its proportions.

    Raises:
        ValueError: ``resize`` is smaller than ``size``, ``mean`` and ``std`` do not have one or
            three entries each, or the interpolation is unknown.
    """

    size: tuple[int, int]
    resize: tuple[int, int]
    interpolation: str = "bilinear"
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    stretch: bool = False

    def __post_init__(self) -> None:
        for field in ("size", "resize"):  # the dataclass is frozen
            object.__setattr__(self, field, pair(getattr(self, field)))
        if not (isinstance(self.mean, tuple) and isinstance(self.std, tuple)):
            raise ValueError(f"mean and std must be tuples: got {self.mean!r}, {self.std!r}")
        if odd := [v for v in (*self.mean, *self.std) if not _is_finite(v)]:
            raise ValueError(f"mean and std must be finite numbers: got {odd[0]!r} among them")
        if not (0 < self.size[0] <= self.resize[0] and 0 < self.size[1] <= self.resize[1]):
            raise ValueError(
                f"resize must be at least size: got size={self.size}, resize={self.resize}"
            )
        if len(self.mean) not in (1, 3) or len(self.std) != len(self.mean) or 0 in self.std:
            raise ValueError(
                "mean and std must have one entry or three each, and std no zero: "
                f"got mean={self.mean}, std={self.std}"
            )
        if self.interpolation not in ("bilinear", "bicubic"):
            raise ValueError(
                f"interpolation must be 'bilinear' or 'bicubic': got {self.interpolation!r}"
            )
        if not isinstance(self.stretch, bool):
            raise ValueError(f"stretch is true or false: got {self.stretch!r}")

    @classmethod
    def like(cls, transforms: Any) -> "Preprocess":
        """The same preprocessing as torchvision's ``weights.transforms()``."""
        return cls(
            size=(transforms.crop_size[0], transforms.crop_size[0]),
            resize=(transforms.resize_size[0], transforms.resize_size[0]),
            interpolation=transforms.interpolation.value,
            mean=tuple(transforms.mean),
            std=tuple(transforms.std),
        )

    def __call__(self, pictures: Picture | list[Picture] | tuple[Picture, ...]) -> Tensor:
        """Makes a batch ``[batch, channels, *size]`` in float32.

        Args:
            pictures: A PIL image of at most 8 bits a channel (it is turned as its EXIF tag says,
                transparency becomes white, and grey, palette and others become RGB, which
                torchvision leaves to its data sets), a uint8 tensor
                ``[channels, height, width]`` or ``[batch, channels, height, width]``, or a list
                of these. PIL resizes images and torch resizes tensors, and they round and clip
                differently.

        Raises:
            TypeError: An image is of another type.
            ValueError: A tensor of another shape or dtype, an image with more bits, an empty list.
        """
        many = pictures if isinstance(pictures, list | tuple) else [pictures]
        if not many:
            raise ValueError("expected at least one image: got an empty list")
        x = torch.cat([self.fit(picture) for picture in many])
        mean, std = (
            torch.tensor(v, dtype=torch.float32, device=x.device).view(-1, 1, 1)
            for v in (self.mean, self.std)
        )
        return (x.float() / 255 - mean) / std

    def fit(self, picture: Picture) -> Tensor:
        """Only resizes and crops: uint8 ``[batch, channels, *size]``, batch 1 for one image."""
        if isinstance(picture, Tensor):
            x = self._resized_tensor(picture)
        else:
            x = self._resized_image(picture)
        (height, width), (h, w) = self.size, x.shape[-2:]
        top, left = round((h - height) / 2), round((w - width) / 2)
        return x[..., top : top + height, left : left + width]

    def _resized_tensor(self, x: Tensor) -> Tensor:
        channels = len(self.mean)
        if (
            x.dtype != torch.uint8
            or x.ndim not in (3, 4)
            or x.shape[-3] != channels
            or 0 in x.shape
        ):
            raise ValueError(
                f"expected uint8 [{channels}, height, width] or [batch, {channels}, height, "
                f"width], values 0 to 255: got {x.dtype} {list(x.shape)}"
            )
        x = x if x.ndim == 4 else x[None]
        size = self._covering(*x.shape[-2:])
        x = F.interpolate(x.float(), size, mode=self.interpolation, antialias=True)
        return x.round().clamp(0, 255).to(torch.uint8)  # a cubic can overshoot

    def _resized_image(self, image: "PIL.Image.Image") -> Tensor:
        from PIL import Image

        if not isinstance(image, Image.Image):
            raise TypeError(
                f"expected a PIL image or a uint8 tensor: got {type(image).__name__} "
                "(PIL.Image.fromarray takes arrays [height, width, 3])"
            )
        if image.mode.startswith(("I", "F")) or 0 in image.size:
            raise ValueError(
                "expected an image of at most 8 bits a channel and at least one pixel: "
                f"got mode {image.mode}, {image.height} x {image.width}"
            )
        image = as_shown(image).convert("RGB" if len(self.mean) == 3 else "L")
        height, width = self._covering(image.height, image.width)
        how = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
        image = image.resize((width, height), how[self.interpolation])
        pixels = np.array(image).reshape(height, width, -1)
        return rearrange(torch.from_numpy(pixels), "h w c -> 1 c h w")

    def _covering(self, height: int, width: int) -> tuple[int, int]:
        """The smallest size with the proportions of ``height x width`` that covers ``resize``.

        It is ``resize`` itself where images are stretched.
        """
        h, w = self.resize
        if self.stretch:
            return h, w
        wider = height * w <= width * h  # the image is the wider one: heights agree
        size = (h, h * width // height) if wider else (w * height // width, w)
        if size[0] * size[1] > PIXELS:
            raise ValueError(
                f"expected at most {PIXELS // 10**6} megapixels once resized: {height} x {width} "
                f"pixels become {size[0]} x {size[1]}"
            )
        return size


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
