"""A folder of images as a data set, with a folder for each class."""

import hashlib
import re
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import torch
from PIL import Image
from torch import Tensor

from minivit._extras import extra
from minivit.data.dataset import Data, Split
from minivit.data.pictures import check_memory, open_picture, plain
from minivit.data.splits import HELD_OUT, PARTS, divide
from minivit.hub.preprocessing import Preprocess
from minivit.networks.shapes import Size

NAMES = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}


class File(NamedTuple):
    """A file, its path inside the data set, and the part and the class that it belongs to."""

    path: Path
    key: str
    part: str
    name: str


def folder(path: str | PathLike[str], size: Size = 64, channels: int = 3) -> Data:
    """Reads a folder of images into memory, in an order that no file system changes.

    It holds a folder for each class, or ``train/`` and perhaps ``validation/`` and ``test/``, which
    hold those; ``training``, ``val``, ``valid``, ``dev`` and ``testing`` are understood too, in
    capitals as well. Class folders may have folders inside. Hidden names are ignored. Where there
    are no validation images, 10 % of each training class are held out, and 20 % where there are no
    test images, chosen by a hash of their paths inside the folder.

    Warns of files that are no images and of damaged ones, which are left out, and of images that
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
    readable = _readable()
    classes, listed = _listed(root)
    files = [file for file in listed if file.path.suffix.lower() in readable]
    others = [file.key for file in listed if file.path.suffix.lower() not in readable]
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


def images_in(path: str | PathLike[str]) -> list[str]:
    """The images in a folder and in those inside, sorted by name; of a file, the file.

    Hidden names and files that are no images by their names are left out.

    Raises:
        ValueError: A folder without images.
    """
    if not Path(path).is_dir():
        return [str(path)]
    readable = _readable()
    found = [str(file) for file in walk(Path(path)) if file.suffix.lower() in readable]
    if not found:
        raise ValueError(f"expected images in {path}: found none")
    return found


def _readable() -> set[str]:
    """The endings of the names of images, such as ``.png``."""
    formats = Image.registered_extensions().items()
    return {suffix for suffix, kind in formats if kind in Image.OPEN}


def _listed(root: Path) -> tuple[tuple[str, ...], list[File]]:
    """The names of the classes, and the files of each part and class."""
    parts = _parts(root)
    names = {part: [folder.name for folder in _folders(path)] for part, path in parts.items()}
    if len(names["train"]) < 2:
        raise ValueError(
            f"expected folders for two classes or more in {parts['train']}: "
            f"got {names['train'] or 'none'}"
        )
    for part in parts:
        if unknown := sorted(set(names[part]) - set(names["train"])):
            raise ValueError(f"{parts[part]} has classes that train has not: {unknown}")
    files = [
        File(path, path.relative_to(root).as_posix(), part, name)
        for part, folder in parts.items()
        for name in names[part]
        for path in walk(folder / name)
    ]
    return tuple(names["train"]), files


def _parts(root: Path) -> dict[str, Path]:
    """The folder of each part, or the whole as the training part."""
    folders = _folders(root)
    found = [folder for folder in folders if folder.name.lower() in NAMES]
    parts = {NAMES[folder.name.lower()]: folder for folder in found}
    names = [folder.name for folder in folders]
    expected = (
        f"expected in {root} a folder for each class, or train, and validation and test if there "
        f"are any: got {', '.join(names)}"
    )
    if alike := _alike(names):
        raise ValueError(f"{expected}. {' and '.join(alike)} seem to be parts: rename them")
    if not found:
        return {"train": root}
    if "train" not in parts or len(found) < len(folders):
        raise ValueError(expected)
    if len(parts) < len(found):
        raise ValueError(f"{expected}, of which two are the same part")
    return parts


def _alike(names: Sequence[str]) -> list[str]:
    """Names such as seg_train and seg_test, which differ only in the name of a part."""
    pattern = re.compile("|".join(sorted(NAMES, key=len, reverse=True)), re.IGNORECASE)
    frames: dict[str, dict[str, str]] = {}
    for name in names:
        if (found := pattern.search(name)) and name.lower() not in NAMES:
            frame = name.replace(found[0], "*", 1).lower()
            frames.setdefault(frame, {})[NAMES[found[0].lower()]] = name
    return next((list(found.values()) for found in frames.values() if len(found) > 1), [])


def _folders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))


def walk(folder: Path, seen: set[Path] | None = None) -> Iterator[Path]:
    """The files in a folder and then those in the folders inside, each folder once."""
    if seen is None:  # a link to a folder above would take in other classes
        above = (*folder.absolute().parents, *folder.resolve().parents)
        seen = {path.resolve() for path in above}
    if folder.resolve() in seen:
        return
    seen.add(folder.resolve())
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from walk(path, seen)
        # Reading a pipe would never end. Reading a broken link fails, and then names it.
        elif path.is_file() or not path.exists():
            yield path


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
