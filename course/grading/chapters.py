"""The book's chapters as a grader needs them: their exercises, their cells, their solutions."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from course.check.exercise import EXERCISES
from course.grading.notebook import Notebook, read

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"


@dataclass(frozen=True)
class Chapter:
    """A chapter with exercises.

    ``solved`` has the texts of the cells with the book's own solutions, which are nobody's answer.
    """

    number: int
    name: str
    exercises: tuple[str, ...]  # in the order in which the notebook checks them
    cells: dict[str, str]  # exercise -> id of its cell
    solved: frozenset[str]


@functools.cache
def exercises() -> dict[int, tuple[str, ...]]:
    """The names of the exercises of each chapter."""
    found: dict[int, tuple[str, ...]] = {}
    for name, each in EXERCISES.items():
        number = int(each.__module__[-2:])
        found[number] = (*found.get(number, ()), name)
    return found


@functools.cache
def chapter(number: int) -> Chapter:
    """A chapter of this checkout."""
    (path,) = BOOK.glob(f"{number:02}_*.ipynb")
    found, names = read(path), set(exercises()[number])
    order = [name for each in found.statements for name in sorted(each.calls & names)]
    ids = {cell.number: cell.id for cell in found.cells}
    first: dict[str, str] = {}
    for each in found.statements:
        for name in each.gives & names:
            first.setdefault(name, ids[each.cell])
    solved = (c for c in found.cells if c.text.startswith("# A solution; skip this cell"))
    return Chapter(
        number=number,
        name=path.stem,
        exercises=tuple(dict.fromkeys(order)),
        cells=first,
        solved=frozenset(squeezed(cell.text) for cell in solved),
    )


def squeezed(text: str) -> str:
    """A text without what editors change: space at the ends of lines, empty lines."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def chapter_of(notebook: Notebook) -> Chapter | None:
    """The chapter whose exercises a notebook defines or checks, by most of them; None without."""
    seen = {name for each in notebook.statements for name in each.calls | each.gives}
    seen.update(name for cell, _ in notebook.broken for name in re.findall(r"\w+", cell.text))
    votes = {number: len(seen & set(names)) for number, names in exercises().items()}
    best = max(votes, key=lambda number: votes[number])
    return chapter(best) if votes[best] else None


def solutions(of: Chapter) -> tuple[Notebook, ...]:
    """The notebooks that hold the book's solutions of a chapter's exercises."""
    places = (BOOK / "solutions" / f"{of.name}.ipynb", BOOK / f"{of.name}.ipynb")
    return tuple(read(path) for path in places if path.exists())
