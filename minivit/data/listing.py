"""Which files a folder of pictures holds, and of which class and part each is."""

import os
import re
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

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
PART = re.compile("|".join(sorted(NAMES, key=len, reverse=True)), re.IGNORECASE)


class File(NamedTuple):
    """A file, its path inside the data set, the part that it belongs to, and its class."""

    path: Path
    key: str
    part: str
    name: str


def list_files(root: str | PathLike[str]) -> tuple[tuple[str, ...], list[File]]:
    """Finds the classes and their files, in an order that does not depend on the file system.

    Args:
        root: A folder with a folder for each class; or with ``train/``, and ``validation/`` and
            ``test/`` if there are any, which hold those. ``training``, ``val``, ``valid``, ``dev``
            and ``testing`` are understood too, in capitals and small letters. Class folders may
            have folders inside. Names that begin with a dot are passed over, and a linked folder is
            entered once.

    Returns:
        The names of the classes and the files, all of part ``"train"`` where there are no folders
        for the parts.

    Raises:
        OSError: There is no such folder, or it cannot be read.
        ValueError: There are fewer than two classes, parts without ``train/``, two folders for one
            part, other folders beside the parts, folders that seem to be parts and have other
            names, or a class that is not in ``train/``.
    """
    root = Path(root)
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
        for path in _walk(folder / name)
    ]
    return tuple(names["train"]), files


def _parts(root: Path) -> dict[str, Path]:
    """The folder of each part; the whole as the training part where there are classes instead."""
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
    """Names of folders, such as seg_train and seg_test, that differ in the name of a part alone."""
    frames: dict[str, dict[str, str]] = {}
    for name in names:
        if (found := PART.search(name)) and name.lower() not in NAMES:
            frame = name.replace(found[0], "*", 1).lower()
            frames.setdefault(frame, {})[NAMES[found[0].lower()]] = name
    return next((list(found.values()) for found in frames.values() if len(found) > 1), [])


def _folders(path: Path) -> list[Path]:
    """The folders in a folder, without hidden ones, by name."""
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))


def _walk(root: Path) -> Iterator[Path]:
    """The files in a folder and those below it, without hidden ones, by name."""
    above = (*root.absolute().parents, *root.resolve().parents)
    seen = {os.path.realpath(folder) for folder in above}  # a link there takes in other classes
    for folder, below, files in os.walk(root, onerror=_refuse, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # a link led back: go no further
            below.clear()
            continue
        seen.add(real)
        below[:] = sorted(name for name in below if not name.startswith("."))
        paths = (Path(folder, name) for name in sorted(files) if not name.startswith("."))
        # A pipe would be waited for. A broken link is left to who reads it, and names it.
        yield from (path for path in paths if path.is_file() or not path.exists())


def _refuse(error: OSError) -> None:
    raise error
