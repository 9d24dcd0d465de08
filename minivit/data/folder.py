"""A folder of pictures as a data set."""

import hashlib
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from minivit._extras import extra
from minivit.data.dataset import Data, Split
from minivit.data.listing import File, list_files
from minivit.data.pictures import check_memory, open_picture, plain
from minivit.data.splits import PARTS, SHARES, divide
from minivit.hub.preprocessing import Preprocess
from minivit.networks.shapes import Size


def folder(path: str | PathLike[str], size: Size = 64, channels: int = 3) -> Data:
    """Reads a folder of pictures into memory.

    Pictures are opened by :func:`~minivit.data.pictures.open_picture`, resized and cropped by
    :class:`~minivit.hub.preprocessing.Preprocess`. Damaged ones, files whose name is not that of a
    picture, and pictures that are in the training part and in another are warned of; the first two
    are left out.

    Args:
        path: A folder as for :func:`~minivit.data.listing.list_files`. Where it has no
            validation pictures, 10 % of each training class are held out for that, and 20 % where
            it has no test pictures, chosen by a hash of their paths inside the folder.
        size: Height and width in pixels. Default: 64.
        channels: 3, or 1 for grey. Default: 3.

    Raises:
        OSError: There is no such folder, or it cannot be read.
        ValueError: The folders inside are others than these, a class has too few pictures, or all
            of them would take more than 4 GB.
    """
    root, preprocess = Path(path), plain(size, channels)
    readable = {suffix for suffix, kind in Image.registered_extensions().items()
                if kind in Image.OPEN}  # fmt: skip
    classes, listed = list_files(root)
    files = [file for file in listed if file.path.suffix.lower() in readable]
    others = [file.key for file in listed if file.path.suffix.lower() not in readable]
    _warn(f"{root}: no pictures, so left out", others)
    check_memory(len(files), channels, size)
    dealt = _deal(files, classes)
    splits, keys, damaged = {}, {}, []
    for part in PARTS:
        splits[part], keys[part], reasons = _read(dealt[part], classes, preprocess, part)
        damaged += reasons
    _warn(f"{root}: damaged, so left out", damaged)
    data = Data.of(root.resolve().name, classes, splits, skipped=tuple(damaged))
    _warn(f"{root}: also among the training pictures", _repeated(splits, keys))
    return data


def _deal(files: Sequence[File], classes: Sequence[str]) -> dict[str, list[File]]:
    """The files of each part, some of the training files held out for parts without any."""
    dealt = {part: [file for file in files if file.part == part] for part in PARTS}
    empty = [part for part in SHARES if not dealt[part]]
    train, shares = dealt["train"], [SHARES[part] for part in empty]
    numbers = divide([file.key for file in train], _labels(train, classes), classes, shares)
    for part, some in zip(["train", *empty], numbers, strict=True):
        dealt[part] = [train[i] for i in some]
    return dealt


def _labels(files: Sequence[File], classes: Sequence[str]) -> Tensor:
    return torch.tensor([classes.index(file.name) for file in files], dtype=torch.int64)


def _read(
    files: Sequence[File], classes: Sequence[str], preprocess: Preprocess, part: str
) -> tuple[Split, list[str], list[str]]:
    """The pictures of a part, their keys, and for each damaged one its key and the reason."""
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
        reasons = list(tqdm(results, part, len(files), unit=" pictures", disable=None))
    split, whole = Split(images, _labels(files, classes)), list(range(len(files)))
    if any(reasons):
        whole = [i for i, reason in enumerate(reasons) if not reason]
        split = split[torch.tensor(whole, dtype=torch.int64)]
    return split, [files[i].key for i in whole], [reason for reason in reasons if reason]


def _repeated(splits: dict[str, Split], keys: dict[str, list[str]]) -> list[str]:
    """The validation and test pictures that are, pixel for pixel, also training pictures."""
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
