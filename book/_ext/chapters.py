"""``book/chapters.yml``, the map of the book, and what it leaves to the notebooks."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml

from book.tools.notebooks import cells, tags
from course.claims.rows import BOOK

MAP = BOOK / "chapters.yml"
WORDS_A_MINUTE = 200  # a usual rate for a text that one thinks about
WORDS_A_LINE = 10  # what a line of code takes, in words
FOLDED = {"remove-cell", "hide-input", "exercise"}


def load_map(path: Path = MAP) -> dict:
    """Reads the map, and sees to it that each entry has the fields that it should have.

    Within braces, YAML ends a text at a comma unless it is quoted, and makes of the rest another
    field.
    """
    book = yaml.safe_load(path.read_text(encoding="utf-8"))
    _expect(book, "parts", "visits")
    for part in book["parts"]:
        _expect(part, "title", "question", "chapters")
        for chapter in part["chapters"].values():
            _expect(chapter, "question", "needs")
    for visit in book["visits"]:
        _expect(visit, "title", "for", "steps")
        for step in visit["steps"]:
            _expect(step, "chapter", "do")
    return book


def _expect(entry: dict, *fields: str) -> None:
    if set(entry) != set(fields) or None in entry.values():
        raise ValueError(
            f"{MAP.name}: expected the fields {', '.join(fields)} and no other, got {entry}; "
            "a text with a comma or a colon must be quoted"
        )


def names() -> dict[int, str]:
    """File names of the chapters by number."""
    return {int(name[:2]): name for part in load_map()["parts"] for name in part["chapters"]}


def notebook(name: str) -> Path:
    """Where a chapter's notebook is, or will be."""
    return BOOK / f"{name}.ipynb"


class Length(NamedTuple):
    """How long a chapter takes, in minutes rounded up to five, and its words of prose."""

    core: int
    deeper: int
    exercises: int
    core_words: int

    def __str__(self) -> str:
        core = f"Core {self.core} min, deeper {self.deeper} min"
        reading = core if self.deeper else f"Reading {self.core} min"
        return f"{reading}, exercises {self.exercises} min."


def length(path: Path) -> Length:
    """A line of code takes as long as ten words; exercises, what each asks for."""
    words, lines = Counter[str](), Counter[str]()
    exercises, section = 0, ""
    for cell in cells(path):
        if cell.cell_type == "markdown":
            heading = re.search(r"^## (.*)", cell.source, re.MULTILINE)
            section = heading[1] if heading else section
            words[section] += len(cell.source.split())
            exercises += sum(map(int, re.findall(r"About\s+(\d+)\s+minutes", cell.source)))
        elif not FOLDED & set(tags(cell)):
            lines[section] += len(cell.source.splitlines())
    deeper = words.pop("Deeper", 0) + WORDS_A_LINE * lines.pop("Deeper", 0)
    for counter in (words, lines):
        del counter["Exercises"]
    core = words.total() + WORDS_A_LINE * lines.total()
    return Length(_fives(core), _fives(deeper), exercises, words.total())


def _fives(words: int) -> int:
    return -(-words // (5 * WORDS_A_MINUTE)) * 5
