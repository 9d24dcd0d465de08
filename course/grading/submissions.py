"""Finds the notebooks in what was handed in, and whose they are."""

import re
from dataclasses import dataclass
from pathlib import Path

# What Canvas and Moodle name the files of a "download all".
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_.+")
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_\w+")


@dataclass(frozen=True)
class Submission:
    """A notebook and whose it is: a name, and an id where the file or its folder has one."""

    path: Path
    student: str
    id: str = ""
    system: str = ""  # "canvas", "moodle" or ""


def find(place: Path) -> list[Submission]:
    """The notebooks of a folder, those in folders inside it included, or the one given.

    Raises:
        ValueError: There is none.
    """
    if place.is_file():
        return [_submission(place, place.parent)]
    paths = (
        path
        for path in place.rglob("*.ipynb")
        if not any(part.startswith(".") for part in path.relative_to(place).parts)
        and path.name != "__MACOSX"
    )
    found = [_submission(path, place) for path in sorted(paths)]
    if not found:
        what = "has no notebook (*.ipynb) in it" if place.is_dir() else "does not exist"
        raise ValueError(f"{place} {what}")
    return _told_apart(found)


def _submission(path: Path, place: Path) -> Submission:
    inside = path.relative_to(place)
    for folder in inside.parts[:-1]:
        if match := MOODLE.fullmatch(folder):
            return Submission(path, match["name"], match["id"], "moodle")
    if match := CANVAS.fullmatch(path.stem):
        return Submission(path, match["name"], match["id"], "canvas")
    return Submission(path, inside.parts[0] if len(inside.parts) > 1 else path.stem)


def _told_apart(found: list[Submission]) -> list[Submission]:
    """Names that stand for one notebook each: the file's is added where a student has several."""
    names = [each.student for each in found]
    return [
        Submission(each.path, f"{each.student} ({each.path.stem})", each.id, each.system)
        if names.count(each.student) > 1
        else each
        for each in found
    ]
