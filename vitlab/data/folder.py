"""A folder of images as a data set, with a folder for each class."""

import hashlib
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import torch

from minivit.preprocessing import Preprocess
from minivit.shapes import Size
from vitlab.data.dataset import HELD_OUT, PARTS, Data, Split, divide
from vitlab.data.pictures import check_memory, hidden, is_picture, open_picture, plain, walk
from vitlab.extras import extra

NAMES = dict.fromkeys(("train", "training"), "train")
NAMES |= dict.fromkeys(("val", "valid", "validation", "dev"), "validation")
NAMES |= dict.fromkeys(("test", "testing"), "test")


class File(NamedTuple):
    """An image file, its path inside the data set, and the index of its class."""

    path: Path
    key: str
    label: int


def folder(path: str | PathLike[str], size: Size = 64, channels: int = 3) -> Data:
    """Reads a folder of images into memory, in an order that no file system changes.

    It holds a folder for each class, or ``train/`` and perhaps ``validation/`` and ``test/``, which
    hold those. Where there are no validation images, 10 % of each training class are held out, and
    20 % where there are no test images, chosen by a hash of their paths inside the folder. Warns of
    files that are left out, and of images that are also among the training images.
    """
    root = Path(path)
    preprocess = plain(size, channels)
    classes, files = _listed(root)
    check_memory(sum(map(len, files.values())), channels, size)
    splits, keys, damaged = {}, {}, []
    for part, chosen in _dealt(files, classes).items():
        splits[part], keys[part], reasons = _read(chosen, preprocess, part)
        damaged += reasons
    _warn(f"{root}: damaged, so left out", damaged)
    data = Data.of(root.resolve().name, classes, splits, skipped=tuple(damaged))
    _warn(f"{root}: also among the training images", _repeated(splits, keys))
    return data


def _listed(root: Path) -> tuple[tuple[str, ...], dict[str, list[File]]]:
    """The names of the classes, and the images of each part."""
    passed: set[Path] = set()
    folders = _folders(root, passed)
    places = {NAMES.get(folder.name.lower(), ""): folder for folder in folders}
    whole = not any(places)  # no folder has the name of a part
    if whole:
        places = {"train": root}
    names = {part: [f.name for f in _folders(place, passed)] for part, place in places.items()}
    classes = names.get("train", [])
    unknown = sorted(set().union(*names.values()) - set(classes))
    unclear = not whole and ("" in places or len(places) < len(folders))
    if unclear or unknown or len(classes) < 2:
        there = ", ".join(folder.name for folder in folders[:9]) or "none"
        there += f", and classes that train does not have, {unknown[:9]}" if unknown else ""
        what = "a folder for each of two classes or more, or train (and validation, test) with such"
        raise ValueError(f"expected in {root} {what}: got {there}")
    others: list[str] = []
    files: dict[str, list[File]] = {part: [] for part in PARTS}
    for part, place in places.items():
        for name in names[part]:
            for path in walk(place / name, passed):
                key = path.relative_to(root).as_posix()
                if is_picture(path):
                    files[part].append(File(path, key, classes.index(name)))
                else:
                    others.append(key)
    _warn(f"{root}: no images, so left out", others)
    hid = sorted(path.relative_to(root).as_posix() for path in passed)
    _warn(f"{root}: folders of systems and programs, so passed over", hid)
    return tuple(classes), files


def _folders(path: Path, passed: set[Path]) -> list[Path]:
    """The folders in a folder but hidden ones, which ``passed`` gets."""
    folders = sorted(p for p in path.iterdir() if p.is_dir())
    passed.update(filter(hidden, folders))
    return [p for p in folders if p not in passed]


def _dealt(files: dict[str, list[File]], classes: Sequence[str]) -> dict[str, list[File]]:
    """The files of each part, with training files held out for parts that have none."""
    train = files["train"]
    empty = [part for part in HELD_OUT if not files[part]]
    labels = torch.tensor([file.label for file in train], dtype=torch.int64)
    indices = divide([file.key for file in train], labels, classes, empty)
    return files | {part: [train[i] for i in chosen] for part, chosen in indices.items()}


def _read(
    files: Sequence[File], preprocess: Preprocess, part: str
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
    split = Split(images, torch.tensor([file.label for file in files], dtype=torch.int64))
    split = split if len(whole) == len(files) else split[whole]
    return split, [files[i].key for i in whole], [reason for reason in reasons if reason]


def _repeated(splits: dict[str, Split], keys: dict[str, list[str]]) -> list[str]:
    """The validation and test images that are, pixel for pixel, also training images."""
    pixels = {
        part: [hashlib.sha256(image.numpy()).digest() for image in split.images]
        for part, split in splits.items()
    }
    known = dict(zip(pixels["train"], keys["train"], strict=True))
    held_out = [pair for part in HELD_OUT for pair in zip(pixels[part], keys[part], strict=True)]
    return [f"{key} = {known[digest]}" for digest, key in held_out if digest in known]


def _warn(what: str, names: Sequence[str]) -> None:
    if names:
        more = ", ..." if len(names) > 3 else ""
        warnings.warn(f"{what}: {len(names)} ({', '.join(names[:3])}{more})", stacklevel=3)
