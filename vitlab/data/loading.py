"""Data sets by name, digits, CIFAR-10 and generated shapes, or from a folder of images."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from os import PathLike
from pathlib import Path

import torch

from minivit.import_torchvision import imported
from minivit.shapes import Size
from vitlab.calls import expect
from vitlab.data.dataset import HELD_OUT, PARTS, Data, Split, divide, statistics, thin
from vitlab.data.folder import folder
from vitlab.data.pictures import fitted
from vitlab.data.shapes import CLASSES, draw_shapes
from vitlab.extras import extra

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def digits(size: Size | None = None, channels: int | None = None) -> Data:
    """Handwritten digits, 1,797 grey images of 8 x 8 pixels, which come with scikit-learn.

    Alpaydin & Kaynak (1998); the same people wrote the parts for training and for the test.
    """
    with extra("train"):
        from sklearn.datasets import load_digits
    bunch = load_digits()
    levels = torch.from_numpy(bunch.images)[:, None]  # [n, 1, 8, 8], whole numbers from 0 to 16
    images = fitted((levels * 255 / 16).round().to(torch.uint8), size, channels)
    names = tuple("0123456789")
    parts = _held_out(Split(images, torch.tensor(bunch.target)), names, HELD_OUT)
    return Data.of("DIGITS", names, parts, licence="CC BY 4.0")


def _held_out(whole: Split, classes: tuple[str, ...], parts: Iterable[str]) -> dict[str, Split]:
    """Deals images, whose positions are their names, to the training part and others."""
    indices = divide([str(i) for i in range(len(whole))], whole.labels, classes, parts)
    return {part: whole[chosen] for part, chosen in indices.items()}


def cifar10(size: Size | None = None, channels: int | None = None) -> Data:
    """CIFAR-10, 60,000 colour images of 32 x 32 pixels, 10,000 of them for the test.

    Krizhevsky (2009). The environment variable ``MINIVIT_CIFAR10`` names a copy, the folder
    ``cifar-10-batches-py`` or the one around it, or a folder of images from ``train/airplane`` to
    ``test/truck``; ``MINIVIT_DOWNLOAD=1`` lets torchvision fetch it into torch.hub's cache.
    """
    copy = os.environ.get("MINIVIT_CIFAR10")
    if not copy and os.environ.get("MINIVIT_DOWNLOAD") != "1":
        raise FileNotFoundError("set MINIVIT_CIFAR10=path, or MINIVIT_DOWNLOAD=1 to fetch 170 MB")
    if copy and Path(copy, "train").is_dir():
        data = folder(copy, size or 32, channels or 3)
        return replace(data, name="CIFAR10, from files")  # which may have been compressed
    path = Path(copy or Path(torch.hub.get_dir(), "datasets"))
    root = path.parent if path.name == "cifar-10-batches-py" else path
    try:
        read = imported().datasets.CIFAR10
        halves = [read(root, train, download=not copy) for train in (True, False)]
    except (RuntimeError, OSError) as error:
        raise FileNotFoundError(f"found no whole copy of CIFAR-10 in {path}: {error}") from error
    pixels = [torch.from_numpy(half.data).permute(0, 3, 1, 2) for half in halves]
    whole, test = (
        Split(fitted(x, size, channels), torch.tensor(half.targets))
        for x, half in zip(pixels, halves, strict=True)
    )
    parts = _held_out(whole, CIFAR10, ["validation"])
    return Data.of("CIFAR10", CIFAR10, parts | {"test": test})


def shapes(size: Size | None = None, channels: int | None = None) -> Data:
    """Generated colour images of textured shapes, 70 % of them with the texture typical of them."""
    parts = {}
    for seed, (part, n) in enumerate(zip(PARTS, (8000, 1000, 2000), strict=True)):
        drawn = draw_shapes(n, size or 32, seed=seed)
        parts[part] = Split(fitted(drawn.images, None, channels), drawn.labels)
    return Data.of("SHAPES", CLASSES, parts, licence="none needed: generated")


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

    The source is ``"DIGITS"``, ``"CIFAR10"``, ``"SHAPES"`` or a folder as for
    :func:`vitlab.data.folder.folder`, of 64 pixels by default: the shorter side is resized, and the
    middle cropped. ``channels`` are 1 for grey or 3 for colour. ``fraction`` is how much of each
    class of the training part to keep; ``seed`` chooses which.
    """
    fits = channels in (None, 1, 3) and 0 < fraction <= 1
    expect(fits, "1 or 3 channels and 0 < fraction <= 1", f"{channels} and {fraction}")
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
