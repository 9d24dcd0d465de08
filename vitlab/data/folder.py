"""A folder of images as a data set, with a folder for each class."""

import hashlib
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor

from minivit.preprocessing import Preprocess
from minivit.shapes import Size
from vitlab.data.dataset import Data, Split
from vitlab.data.listing import File, listed, readable
from vitlab.data.pictures import check_memory, open_picture, plain
from vitlab.data.splits import HELD_OUT, PARTS, divide
from vitlab.extras import extra


def folder(path: str | PathLike[str], size: Size = 64, channels: int = 3) -> Data:
    """Reads a folder of images into memory, in an order that no file system changes.

    It holds a folder for each class, or ``train/`` and perhaps ``validation/`` and ``test/``, which
    hold those; ``training``, ``val``, ``valid``, ``dev`` and ``testing`` are understood too, in
    capitals as well. Class folders may have folders inside. Hidden names are ignored. Where there
    are no validation images, 10 % of each training class are held out, and 20 % where there are no
    test images, chosen by a hash of their paths inside the folder.

    Warns of files that are not images and of damaged ones, which are left out, and of images that
    are also among the training images.

    Args:
        size: Height and width in pixels. Other proportions are cropped to the middle.
        channels: 3, or 1 for grey.

    Raises:
        OSError: There is no such folder, or it cannot be read.
        ValueError: It has other folders than these, a class has too few images, or all of them
            would take more than 4 GB.
    """
    root = Path(path)
    preprocess = plain(size, channels)
    endings = readable()
    classes, found = listed(root)
    files = [file for file in found if file.path.suffix.lower() in endings]
    others = [file.key for file in found if file.path.suffix.lower() not in endings]
    _warn(f"{root}: no images, so left out", others)
    check_memory(len(files), channels, size)
    splits, keys, damaged = {}, {}, []
    for part, some in _dealt(files, classes).items():
        splits[part], keys[part], reasons = _read(some, classes, preprocess, part)
        damaged += reasons
    _warn(f"{root}: damaged, so left out", damaged)
    data = Data.of(root.resolve().name, classes, splits, skipped=tuple(damaged))
    _warn(f"{root}: also among the training images", _repeated(splits, keys))
    return data


def _dealt(files: Sequence[File], classes: Sequence[str]) -> dict[str, list[File]]:
    """The files of each part, with training files held out for parts that have none."""
    dealt = {part: [file for file in files if file.part == part] for part in PARTS}
    train = dealt["train"]
    empty = [part for part in HELD_OUT if not dealt[part]]
    fractions = [HELD_OUT[part] for part in empty]
    indices = divide([file.key for file in train], _labels(train, classes), classes, fractions)
    for part, some in zip(["train", *empty], indices, strict=True):
        dealt[part] = [train[i] for i in some]
    return dealt


def _labels(files: Sequence[File], classes: Sequence[str]) -> Tensor:
    return torch.tensor([classes.index(file.name) for file in files], dtype=torch.int64)


def _read(
    files: Sequence[File], classes: Sequence[str], preprocess: Preprocess, part: str
) -> tuple[Split, list[str], list[str]]:
    """The images of a part, their keys, and for each damaged one its key and the reason."""
    with extra("train"):
        from tqdm import tqdm
    images = torch.empty(len(files), len(preprocess.mean), *preprocess.size, dtype=torch.uint8)

    def read(i: int) -> str | None:
        try:
            images[i] = preprocess.fit(open_picture(files[i].path))[0]
        except Exception as error:  # each of Pillow's formats has its own ways to fail
            return f"{files[i].key}: {type(error).__name__}: {error}"
        return None

    # Threads are enough: Pillow decodes and resizes without the interpreter's lock.
    with ThreadPoolExecutor() as pool:
        results = pool.map(read, range(len(files)))
        reasons = list(tqdm(results, part, len(files), unit=" images", disable=None))
    whole = [i for i, reason in enumerate(reasons) if not reason]
    split = Split(images, _labels(files, classes))
    if len(whole) < len(files):
        split = split[torch.tensor(whole, dtype=torch.int64)]
    return split, [files[i].key for i in whole], [reason for reason in reasons if reason]


def _repeated(splits: dict[str, Split], keys: dict[str, list[str]]) -> list[str]:
    """The validation and test images that are, pixel for pixel, also training images."""
    known: dict[bytes, str] = {}
    found = []
    for part in PARTS:  # training comes first
        for key, image in zip(keys[part], splits[part].images, strict=True):
            pixels = hashlib.sha256(image.numpy()).digest()
            if part == "train":
                known[pixels] = key
            elif pixels in known:
                found.append(f"{key} = {known[pixels]}")
    return found


def _warn(what: str, names: Sequence[str]) -> None:
    if names:
        more = ", ..." if len(names) > 3 else ""
        warnings.warn(f"{what}: {len(names)} ({', '.join(names[:3])}{more})", stacklevel=3)
