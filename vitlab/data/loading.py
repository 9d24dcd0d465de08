"""Data sets by name, or from a folder of images."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path

from minivit.shapes import Size
from vitlab.data.dataset import Data, Split, statistics
from vitlab.data.folder import folder
from vitlab.data.sources import cifar10, digits, shapes
from vitlab.data.splits import thin

__all__ = ["Data", "Split", "load_data"]

SOURCES: dict[str, Callable[..., Data]] = {"DIGITS": digits, "CIFAR10": cifar10, "SHAPES": shapes}


def load_data(
    source: str | PathLike[str],
    *,
    size: Size | None = None,
    channels: int | None = None,
    fraction: float = 1.0,
    seed: int = 0,
) -> Data:
    """Loads images and labels in three parts, the same on every machine.

    Args:
        source: ``"DIGITS"``, ``"CIFAR10"`` or ``"SHAPES"``, described in
            :mod:`vitlab.data.sources`, or a folder as for :func:`vitlab.data.folder.folder`.
        size: Height and width in pixels. The shorter side is resized, with antialiasing, and the
            middle cropped. Default: 64 for a folder, and for the others their own, 8 for digits,
            32 for CIFAR-10 and shapes.
        channels: 1 for grey or 3 for colour. Default: 1 for digits, 3 for the others.
        fraction: How much of the training part to keep, of each class alike, at least one image.
            A smaller fraction lies inside a larger one.
        seed: Chooses what ``fraction`` keeps. The parts are the same for every seed.

    Raises:
        OSError: There is no such folder or copy of CIFAR-10, or it cannot be read.
        ValueError: A setting is out of range, or a folder is not a data set; the message says why.
    """
    if channels not in (None, 1, 3) or not 0 < fraction <= 1:
        raise ValueError(
            f"expected 1 or 3 channels, and a fraction above 0 and at most 1: got {channels} and "
            f"{fraction}"
        )
    if source in SOURCES:
        data = SOURCES[str(source)](size, channels)
    elif Path(source).is_dir():
        data = folder(source, size or 64, channels or 3)
    else:
        raise FileNotFoundError(f"expected {', '.join(SOURCES)} or a folder: got {source}")
    if fraction == 1:
        return data
    train = data.train[thin(data.train.labels, fraction, seed)]
    mean, std = statistics(train.images)
    return replace(data, train=train, mean=mean, std=std)
