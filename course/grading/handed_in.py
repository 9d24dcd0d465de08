"""Finds what a class handed in: every file, whose it is, and what is in zips."""

import os
import re
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# How Canvas and Moodle name the files of a "download all", and Moodle its folders.
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_(?P<turn>\d+)_.+\.\w+")
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_.+")
JUNK = re.compile(r"\.|__MACOSX$|__pycache__$|Thumbs\.db$|desktop\.ini$")  # that systems make
LARGEST, MOST = 500 * 2**20, 10_000  # bytes and files that a zip may unpack to
DEEPEST = 30  # folders in folders


@dataclass(frozen=True)
class Submission:
    """A file that was handed in and whose it is: a name, and an id where the names have one."""

    path: Path
    student: str
    id: str = ""
    file: str = ""  # its name as it was handed in, after that of the zip that holds it
    turn: int = 0  # larger for what came later, where Canvas says so
    problem: str = ""  # why there is nothing to read, where there is not

    @property
    def person(self) -> str:
        return self.id or self.student


def find(place: Path, scratch: Path) -> list[Submission]:
    """The files of a folder, those in folders and zips inside it included, or the one given.

    Zips are unpacked into ``scratch``. A folder or zip in which nothing can be graded is there
    itself, with the reason.
    """
    if not place.exists():
        raise ValueError(f"{place} does not exist")
    if _zipped(place):
        try:
            place = _unpacked(place, scratch)
        except Exception as error:
            raise ValueError(f"{place} cannot be unpacked: {error}") from error
    while place.is_dir() and len(inner := _inside(place)) == 1 and not MOODLE.match(inner[0].name):
        if not inner[0].is_dir() or len(_inside(inner[0])) < 2:
            break
        place = inner[0]  # a folder around the class, and no student's
    roots = _inside(place) if place.is_dir() else [place]
    found: dict[str, Submission] = {}
    for path, name, problem in (each for root in roots for each in _walk(root, "", scratch)):
        while name in found:  # two names that look alike
            name += "'"
        found[name] = _submission(path, name, problem)
    if not found:
        raise ValueError(f"{place} has no file in it")
    return list(found.values())


def readable(name: str) -> str:
    """A file's name as text: what old systems wrote in Latin-1, and signs that do not print."""
    try:
        name.encode()
    except UnicodeEncodeError:
        name = os.fsencode(name).decode("latin-1")
    name = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
    return unicodedata.normalize("NFC", name)


def _walk(path: Path, within: str, scratch: Path) -> Iterator[tuple[Path, str, str]]:
    """Of each file below a path: where it is, its name from there, what is wrong with it."""
    name = within + readable(path.name)
    zipped = _zipped(path)
    try:
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ValueError("a link or a device, no file")
        if name.count("/") > DEEPEST or (zipped and name.lower().count(".zip/") > 1):
            raise ValueError("too deep in folders or in other zips")
        folder = _unpacked(path, scratch) if zipped else path
        inside = _inside(folder) if folder.is_dir() else None
    except Exception as error:  # as many as there are ways to break a zip
        yield path, name, f"It cannot be opened: {error}."
        return
    if inside is None:
        yield path, name, ""
        return
    below = [each for inner in inside for each in _walk(inner, f"{name}/", scratch)]
    if zipped:  # it is what was handed in, not the files around its notebooks
        kinds = [[e for e in below if e[1].lower().endswith(k)] for k in (".ipynb", ".py", ".zip")]
        below = next(filter(None, kinds), [])
    yield from below or [(path, name, "There is no notebook in it.")]


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not JUNK.match(path.name))


def _zipped(path: Path) -> bool:
    return path.suffix.lower() == ".zip" and path.is_file()


def _unpacked(path: Path, scratch: Path) -> Path:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    with zipfile.ZipFile(path) as file:
        listed = file.infolist()
        if sum(each.file_size for each in listed) > LARGEST or len(listed) > MOST:
            raise ValueError(f"it unpacks to over {LARGEST >> 20} MB, or {MOST} files")
        file.extractall(folder)
    return folder


def _submission(path: Path, name: str, problem: str) -> Submission:
    first, *rest = parts = name.split("/")
    for part in parts:
        if match := MOODLE.fullmatch(part) or CANVAS.fullmatch(part):
            turn = int(match.groupdict().get("turn", 0))
            return Submission(path, match["name"], match["id"], name, turn, problem)
    folder = rest and not first.lower().endswith(".zip")
    return Submission(path, first if folder else Path(first).stem, "", name, 0, problem)
