"""``book/chapters.yml``, the map of the book, and what it leaves to the notebooks."""

import re
from pathlib import Path

import nbformat
import yaml

from course.claims.rows import BOOK

MAP = BOOK / "chapters.yml"
WORDS_A_MINUTE = 200  # a usual rate for a text that one thinks about


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


def minutes(path: Path) -> tuple[int, int]:
    """Minutes to read a chapter's prose, rounded up to five, and those its exercises ask for."""
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    prose, *_ = re.split(r"^## Exercises", text, flags=re.MULTILINE)
    reading = -(-len(prose.split()) // (5 * WORDS_A_MINUTE)) * 5
    return reading, sum(map(int, re.findall(r"About (\d+) minutes", text)))
