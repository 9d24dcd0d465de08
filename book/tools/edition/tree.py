"""Writes the sources of an edition: a copy of the book's, from which it is built as the book is.

``edition.json`` in the copy tells ``book/_ext/edition.py`` what it leaves out.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from book.tools import notebooks, portable
from book.tools.address import FIGURES, ROOT
from book.tools.edition import contents
from book.tools.edition.student import exchange, rewrite
from book.tools.roles import places

COPIED = ("book", "course", "minivit", "studies", "vitlab", "_config.yml", "_toc.yml",
          "CHANGELOG.md", "CITATION.cff", "LICENSE", "LICENSE-text", "index.md",
          "requirements.txt")  # fmt: skip


class Edition(NamedTuple):
    student: bool = False
    chapters: frozenset[int] | None = None  # all of them
    whole: str = ""  # where the whole book is published; empty: nowhere to link to
    site: str = ""  # where the packages are served for notebooks that are handed out


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def dump(path: Path, data: object) -> None:
    path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")


def table(edition: Edition) -> tuple[contents.Contents, frozenset[str]]:
    """The edition's table of contents, and the pages of the book that it leaves out."""
    whole = load("_toc.yml")
    lesser = contents.for_students(whole) if edition.student else whole
    if edition.chapters is not None:
        lesser = contents.remixed(lesser, edition.chapters)
    return lesser, frozenset(contents.pages(whole)) - frozenset(contents.pages(lesser))


def write(edition: Edition, folder: Path) -> None:
    """Writes the sources into a folder that is not there yet."""
    contents_, left_out = table(edition)
    folder.mkdir(parents=True)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, folder)
    if FIGURES.is_dir():
        shutil.copytree(FIGURES, folder / FIGURES.relative_to(ROOT))
    dump(folder / "_toc.yml", contents_)
    labels = {
        label: place.page.relative_to(ROOT).with_suffix("").as_posix()
        for label, place in places().items()
    }
    about = {
        "left_out": {page: title(page) for page in sorted(left_out)},
        "labels": {label: page for label, page in labels.items() if page in left_out},
        "whole": edition.whole,
    }
    (folder / "edition.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    if edition.chapters is not None:
        book = contents.remixed_map(load("book/chapters.yml"), edition.chapters)
        dump(folder / "book/chapters.yml", book)
    if edition.student:
        for_students(folder, left_out)


def unwanted(folder: str, names: list[str]) -> set[str]:
    """What is not copied: caches, a reader's own ViT, what studies keep of their trainings."""
    trainings = {"runs"} if Path(folder) == ROOT / "studies" else set()
    return shutil.ignore_patterns("__pycache__", ".*", "my_vit.*")(folder, names) | trainings


def for_students(folder: Path, left_out: frozenset[str]) -> None:
    """Takes out of an edition's sources what students do not get."""
    for page in left_out:
        if contents.number(page) is None or page.startswith("book/solutions"):
            for file in folder.glob(f"{page}.*"):
                file.unlink()
            shutil.rmtree(folder / page, ignore_errors=True)  # as of slides
    for path in sorted(folder.glob("book/*.ipynb")):
        notebook = notebooks.read(path)
        exchange(notebook, path.stem)
        notebooks.write(path, notebook)
    for path in (folder / "index.md", folder / "book/how_to_read.md"):
        (text,) = rewrite([path.read_text(encoding="utf-8")], path.stem)
        path.write_text(text, encoding="utf-8")


def title(page: str) -> str:
    prose = portable.prose(next(ROOT.glob(f"{page}.*")))
    heading = re.search(r"^# (.+)$", prose, re.MULTILINE)
    return heading[1] if heading else page
