"""``book/chapters.yml``, the map of the book, and what it leaves to the notebooks."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml

from book.tools.notebooks import tags
from book.tools.portable import cells
from course.claims.rows import BOOK

MAP = BOOK / "chapters.yml"
WORDS_A_MINUTE = 200  # a usual rate for a text that one thinks about
WORDS_A_LINE = 20  # what a line of code takes, in words: ten lines a minute
FOLDED = {"hide-input", "exercise"}


def load_map() -> dict:
    return yaml.load(MAP.read_text(encoding="utf-8"), yaml.CSafeLoader)


def names() -> dict[int, str]:
    """File names of the chapters by number, from 0."""
    parts = [["00_in_an_hour"], *(part["chapters"] for part in load_map()["parts"])]
    return {int(name[:2]): name for part in parts for name in part}


def notebook(name: str) -> Path:
    return BOOK / f"{name}.ipynb"


class Length(NamedTuple):
    """How long a chapter takes, in minutes rounded up to five."""

    core: int
    deeper: int
    exercises: int

    def __str__(self) -> str:
        core = f"Core {self.core} min, deeper {self.deeper} min"
        reading = core if self.deeper else f"Reading {self.core} min"
        return f"{reading}, exercises {self.exercises} min."


def length(path: Path) -> Length:
    """From words and open lines of code; exercises take what each says."""
    words, exercises, section = Counter[str](), 0, ""  # words by section
    for cell in cells(path):
        if cell.cell_type == "markdown":
            heading = re.search(r"^## (.*)", cell.source, re.MULTILINE)
            section = heading[1] if heading else section
            words[section] += len(cell.source.split())
            exercises += sum(map(int, re.findall(r"About\s+(\d+)\s+minutes", cell.source)))
        elif not FOLDED & set(tags(cell)):
            words[section] += WORDS_A_LINE * len(cell.source.splitlines())
    deeper = words["Deeper"]
    core = words.total() - deeper - words["Exercises"]
    core, deeper = (-(-number // (5 * WORDS_A_MINUTE)) * 5 for number in (core, deeper))
    return Length(core, deeper, exercises)
