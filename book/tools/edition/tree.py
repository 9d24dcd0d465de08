"""Writes the sources of an edition: a copy of the book's, from which it is built as the book is.

``edition.json`` in the copy says what it leaves out. ``book/_ext/edition.py`` reads it, and turns
links to what is not there into text, or into links to the whole book.
"""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml

from book.tools.address import ROOT
from book.tools.edition import contents
from book.tools.edition.student import exchanged, rewritten

COPIED = ("book", "course", "minivit", "studies", "vitlab", "_config.yml", "_toc.yml",
          "CHANGELOG.md", "CITATION.cff", "LICENSE", "LICENSE-text", "index.md",
          "requirements.txt")  # fmt: skip
# What a page can be pointed at: (name)=, :name: of a directive, (name) behind an equation.
LABEL = re.compile(r"^\(([\w-]+)\)=$|^:(?:name|label): ([\w-]+)$|\$\$ \(([\w-]+)\)", re.MULTILINE)


class Edition(NamedTuple):
    """Which book is made of the sources."""

    student: bool = False
    chapters: frozenset[int] | None = None  # all of them
    whole: str = ""  # where the whole book is published; empty: nowhere to link to


def unwanted(folder: str, names: list[str]) -> set[str]:
    """What is not copied: caches, and what studies keep of their trainings."""
    kept_by_studies = {"runs"} if Path(folder) == ROOT / "studies" else set()
    return shutil.ignore_patterns("__pycache__", ".*")(folder, names) | kept_by_studies


def table(edition: Edition) -> tuple[contents.Contents, frozenset[str]]:
    """The edition's table of contents, and the pages of the book that it leaves out."""
    whole = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    kept = contents.for_students(whole) if edition.student else whole
    if edition.chapters is not None:
        kept = contents.remixed(kept, edition.chapters)
    return kept, frozenset(contents.pages(whole)) - frozenset(contents.pages(kept))


def write(edition: Edition, folder: Path) -> None:
    """Writes the sources into a folder that is not there yet.

    Raises:
        ValueError: Something is not as the edition needs it.
    """
    kept, left_out = table(edition)
    folder.mkdir(parents=True)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, folder)
    drawn = ROOT / "_build/figures"  # by book.tools.figures
    if drawn.is_dir():
        shutil.copytree(drawn, folder / "_build/figures")
    write_yaml(folder / "_toc.yml", kept)
    said = {
        "left_out": {page: title(page) for page in sorted(left_out)},
        "labels": {label: page for page in sorted(left_out) for label in labels(page)},
        "whole": edition.whole,
    }
    (folder / "edition.json").write_text(json.dumps(said, indent=1), encoding="utf-8")
    if edition.chapters is not None:
        book = yaml.safe_load((ROOT / "book/chapters.yml").read_text(encoding="utf-8"))
        write_yaml(folder / "book/chapters.yml", contents.remixed_map(book, edition.chapters))
    if edition.student:
        for_students(folder, left_out)


def for_students(folder: Path, left_out: frozenset[str]) -> None:
    """Takes out of an edition's sources what students do not get."""
    for page in left_out:
        if contents.number(page) is None or page.startswith("book/solutions"):
            for file in folder.glob(f"{page}.*"):
                file.unlink()
            shutil.rmtree(folder / page, ignore_errors=True)  # as of slides
    for path in sorted(folder.glob("book/*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        exchanged(notebook, path.stem)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    for name in ("index.md", "book/how_to_read.md"):
        path = folder / name
        (text,) = rewritten([path.read_text(encoding="utf-8")], path.stem)
        path.write_text(text, encoding="utf-8")


def source(page: str) -> Path:
    """The file of a page."""
    return next(ROOT.glob(f"{page}.*"))


def text(page: str) -> str:
    """What is written on a page, without code."""
    path = source(page)
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def title(page: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", text(page), re.MULTILINE)
    return found[1] if found else page


def labels(page: str) -> list[str]:
    """Figures, equations and places of a page to which others point."""
    found = [next(filter(None, match.groups())) for match in LABEL.finditer(text(page))]
    if source(page).suffix == ".ipynb":
        for cell in nbformat.read(source(page), as_version=4).cells:
            figure = cell.metadata.get("mystnb", {}).get("figure", {})
            found += [figure["name"]] if "name" in figure else []
    return found


def write_yaml(path: Path, data: object) -> None:
    path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")
