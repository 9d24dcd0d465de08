"""The files of a data set in a folder: which part and which class each belongs to."""

import re
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from PIL import Image

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


def readable() -> set[str]:
    """The endings of the names of images, such as ``.png``."""
    formats = Image.registered_extensions().items()
    return {suffix for suffix, kind in formats if kind in Image.OPEN}


def listed(root: Path) -> tuple[tuple[str, ...], list[File]]:
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
            raise ValueError(f"{parts[part]} has classes that train does not have: {unknown}")
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


def images_in(path: str | PathLike[str]) -> list[str]:
    """The images in a folder and in those inside, sorted by name; of a file, the file.

    Hidden files, and files whose names are not those of images, are left out.

    Raises:
        ValueError: A folder without images.
    """
    if not Path(path).is_dir():
        return [str(path)]
    endings = readable()
    found = [str(file) for file in walk(Path(path)) if file.suffix.lower() in endings]
    if not found:
        raise ValueError(f"expected images in {path}: found none")
    return found
