"""The image files in a folder and in those inside."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from PIL import Image


def readable() -> set[str]:
    """The endings of the names of images, such as ``.png``."""
    formats = Image.registered_extensions().items()
    return {suffix for suffix, kind in formats if kind in Image.OPEN}


def walk(folder: Path, visited: set[Path] | None = None) -> Iterator[Path]:
    """The files in a folder and then those in the folders inside, each folder once."""
    if visited is None:  # a link to a folder above would take in other classes
        above = (*folder.absolute().parents, *folder.resolve().parents)
        visited = {path.resolve() for path in above}
    if folder.resolve() in visited:
        return
    visited.add(folder.resolve())
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from walk(path, visited)
        # Reading a pipe would never end. Reading a broken link fails, and then names it.
        elif path.is_file() or not path.exists():
            yield path


def images_in(path: str | PathLike[str]) -> list[str]:
    """The images in a folder and in those inside, sorted by name; of a file, the file.

    Hidden files, and files whose names are not those of images, are left out.
    """
    if not Path(path).is_dir():
        return [str(path)]
    endings = readable()
    return [str(file) for file in walk(Path(path)) if file.suffix.lower() in endings]
