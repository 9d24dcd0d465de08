"""``book/chapters.yml``, the map of the book, and what it leaves to the notebooks."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml

from course.claims.rows import BOOK

MAP = BOOK / "chapters.yml"
WORDS_A_MINUTE = 200  # a usual rate for a text that one thinks about
WORDS_A_LINE = 10  # what a line of code takes, in words
FOLDED = {"remove-cell", "hide-input", "exercise"}


def load_map(path: Path = MAP) -> dict:
    """Reads the map.

    Raises:
        ValueError: An entry has not exactly the fields that it should have. Within braces, YAML
            ends a text at a comma unless it is quoted, and makes of the rest another field.
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
    return {
        int(name[:2]): name
        for part in load_map()["parts"]
        for name in part["chapters"]
    }


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
        reading = (
            f"Core {self.core} min, deeper {self.deeper} min"
            if self.deeper
            else f"Reading {self.core} min"
        )
        return f"{reading}, exercises {self.exercises} min."


def length(path: Path) -> Length:
    """A line of code takes as long as ten words; exercises, what each asks for."""
    words, lines = Counter[str](), Counter[str]()
    asked, section = 0, ""
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            heading = re.search(r"^## (.*)", cell.source, re.MULTILINE)
            section = heading[1] if heading else section
            words[section] += len(cell.source.split())
            asked += sum(
                map(int, re.findall(r"About\s+(\d+)\s+minutes", cell.source))
            )
        elif not FOLDED & set(cell.metadata.get("tags", [])):
            lines[section] += len(cell.source.splitlines())
    apart = ("Deeper", "Exercises")
    core_words = sum(number for name, number in words.items() if name not in apart)
    core_lines = sum(number for name, number in lines.items() if name not in apart)
    return Length(
        _fives(core_words + WORDS_A_LINE * core_lines),
        _fives(words["Deeper"] + WORDS_A_LINE * lines["Deeper"]),
        asked,
        core_words,
    )


def _fives(words: int) -> int:
    return -(-words // (5 * WORDS_A_MINUTE)) * 5
