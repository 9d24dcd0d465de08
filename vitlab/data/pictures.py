"""Image files: those in a folder, and each as it should look, upright, opaque, 8 bits a channel."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from minivit.patches import pair
from minivit.preprocessing import Preprocess, as_shown
from minivit.shapes import Size
from vitlab.calls import expect

MEMORY = 4e9  # bytes that the images of a data set may take
CHUNK = 1024  # images resized at a time, as float32
# Of macOS, network storage and disks: thumbnails, copies, and what was deleted.
SYSTEM = {"__macosx", "@eadir", "@__thumb", "@recycle", "#recycle", "$recycle.bin", "lost+found"}


def is_picture(path: Path) -> bool:
    """Whether a file has the name of an image, such as ``a.png``."""
    return Image.registered_extensions().get(path.suffix.lower()) in Image.OPEN


def hidden(path: Path) -> bool:
    """Whether a file or folder is one that systems and programs make for themselves."""
    return path.name.startswith(".") or path.name.lower() in SYSTEM


def walk(folder: Path, passed: set[Path] | None = None) -> Iterator[Path]:
    """The files in a folder, by name, then those in the folders inside, but linked or hidden ones.

    ``passed`` gets the hidden folders.
    """
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if hidden(path):
            if passed is not None and path.is_dir():
                passed.add(path)
        elif path.is_dir():
            if not path.is_symlink():  # to a folder above, it would take in other classes
                yield from walk(path, passed)
        # Reading a pipe would never end. Reading a broken link fails, and then names it.
        elif path.is_file() or not path.exists():
            yield path


def open_picture(path: str | PathLike[str]) -> Image.Image:
    """Opens an image in any format that Pillow reads, as RGB, or as L where the file is grey.

    It is turned as its EXIF tag says, on white, in 8 bits. Broken files raise many kinds of errors.
    """
    with Image.open(path) as file:
        file.load()
        image = as_shown(file)
        if image.mode.startswith("I;16"):
            levels = np.asarray(image).astype(np.float64)
            image = Image.fromarray((levels * 255 / 65535).round().astype(np.uint8))
        known = image.mode not in ("I", "F")
        expect(known, "at most 16 bits a channel", f"mode {image.mode}")
        return image.convert("L" if image.mode in ("1", "L") else "RGB")


def fitted(
    images: UInt8[Tensor, "batch _ height width"], size: Size | None, channels: int | None
) -> UInt8[Tensor, "batch channels new_height new_width"]:
    """Gives images another size, cropped to the middle, and number of channels; None keeps them."""
    height, width = pair(size) if size is not None else images.shape[-2:]
    check_memory(len(images), channels or images.shape[1], (height, width))
    if channels == 1 and images.shape[1] == 3:
        weights = torch.tensor([0.299, 0.587, 0.114])
        grey = [torch.einsum("nchw,c->nhw", part.float(), weights) for part in images.split(CHUNK)]
        images = torch.cat(grey)[:, None].round().to(torch.uint8)
    elif channels == 3:
        images = images.expand(-1, 3, -1, -1)
    if (height, width) == images.shape[-2:]:
        return images.contiguous()
    to_size = plain((height, width), images.shape[1])
    return torch.cat([to_size.fit(part) for part in images.split(CHUNK)])


def check_memory(n: int, channels: int, size: Size) -> None:
    """Refuses images that would take more than 4 GB, or have no pixel."""
    height, width = pair(size)
    fits = min(height, width) > 0 and n * channels * height * width <= MEMORY
    got = f"{n} of {height} x {width} pixels"
    expect(fits, f"images that take at most {MEMORY / 1e9:g} GB of memory", got)


def plain(size: Size, channels: int) -> Preprocess:
    """Preprocessing that resizes the shorter side to ``size`` and crops the middle."""
    return Preprocess(pair(size), pair(size), mean=(0.0,) * channels, std=(1.0,) * channels)
