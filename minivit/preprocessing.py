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

from minivit.model import check_rule
from minivit.patches import pair

if TYPE_CHECKING:
    import PIL.Image

Picture: TypeAlias = Union["PIL.Image.Image", Tensor]


def as_shown(image: "PIL.Image.Image") -> "PIL.Image.Image":
    """Turns an image as its EXIF tag says, and lays what is transparent on white, in RGB."""
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
        values = self.mean, self.std
        fits = all(isinstance(v, tuple) and all(map(_is_finite, v)) for v in values)
        check_rule(self, fits, "mean and std must be tuples of finite numbers")
        fits = len(self.mean) in (1, 3) and len(self.std) == len(self.mean) and min(self.std) > 0
        check_rule(self, fits, "mean and std must have one entry or three each, std above zero")
        fits = all(0 < n <= m for n, m in zip(self.size, self.resize, strict=True))
        check_rule(self, fits, "resize must be at least size")
        fits = self.interpolation in ("bilinear", "bicubic") and isinstance(self.stretch, bool)
        check_rule(self, fits, "interpolation is bilinear or bicubic, and stretch True or False")

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
        fits = x.ndim in (3, 4) and x.shape[-3] == channels and 0 not in x.shape
        if x.dtype != torch.uint8 or not fits:
            expected = f"uint8 [{channels}, height, width] or a batch of those, values 0 to 255"
            raise ValueError(f"expected {expected}: got {x.dtype} {list(x.shape)}")
        x = x if x.ndim == 4 else x[None]
        size = self._covering(*x.shape[-2:])
        x = F.interpolate(x.float(), size, mode=self.interpolation, antialias=True)
        return x.round().clamp(0, 255).to(torch.uint8)  # a cubic can overshoot

    def _resized_image(self, image: "PIL.Image.Image") -> Tensor:
        from PIL import Image

        if not isinstance(image, Image.Image):
            raise TypeError(f"expected a PIL image or a uint8 tensor: got {type(image).__name__}")
        if image.mode.startswith(("I", "F")) or 0 in image.size:
            got = f"mode {image.mode}, {image.height} x {image.width}"
            raise ValueError(f"expected at most 8 bits a channel and at least one pixel: got {got}")
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
            most = f"{PIXELS // 10**6} megapixels once resized"
            raise ValueError(f"expected at most {most}: {height} x {width} pixels become {size}")
        return size


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
