"""The chapters' exercises, a student's answers to them in a notebook, and the book's own."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import yaml

from course.check import EXERCISES
from course.definitions import Statement, needed
from course.grading.notebook import Notebook, read

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
# Words that an answer has no need of. They are not forbidden, and worth a look.
ODD = (
    *("_getframe", "inspect", "ctypes", "gc.get_", "import course", "builtins", "open(", "os."),
    *("subprocess", "socket", "shutil", "pathlib", "importlib", "__import__", "eval(", "exec("),
)
REFUSED: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("refused.yml").read_text())
SOLVES = "which solves the exercise in one call"
STAND_IN = "written_or("  # in notebooks handed out, where the book goes on with its solution


@dataclass(frozen=True)
class Chapter:
    number: int
    name: str
    exercises: tuple[str, ...]  # in the order in which the notebook checks them
    cells: dict[str, str]  # exercise -> id of its cell
    solved: frozenset[str]  # texts of the book's solutions in it, which are nobody's
    printed: dict[str, str]  # the texts of its other functions, by name


@dataclass(frozen=True)
class Answer:
    """The source of a function and of what it needs; without a source, why there is none."""

    exercise: str
    source: str = ""
    missing: str = ""
    state: str = "missing"  # or refused
    notes: tuple[str, ...] = ()


@functools.cache
def exercises() -> dict[int, tuple[str, ...]]:
    """The names of the exercises of each chapter."""
    grouped = groupby(EXERCISES, lambda name: int(EXERCISES[name].__module__[-2:]))
    return {number: tuple(names) for number, names in grouped}


@functools.cache
def chapter(number: int) -> Chapter:
    (path,) = BOOK.glob(f"{number:02}_*.ipynb")
    notebook, names = read(path), set(exercises()[number])
    ids = {cell.number: cell.id for cell in notebook.cells}
    order: list[str] = []
    first: dict[str, str] = {}
    for statement in notebook.statements:
        order += sorted(statement.calls & names)
        for name in statement.gives & names:
            first.setdefault(name, ids[statement.cell])
    texts = frozenset(_squeezed(each.text) for each in notebook.statements if each.of_book)
    own = {n: s.text for s in notebook.statements if not s.of_book for n in s.gives - names}
    return Chapter(number, path.stem, tuple(dict.fromkeys(order)), first, texts, own)


def _squeezed(text: str) -> str:
    """A text without what editors change: space at the ends of lines, empty lines."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def chapter_of(notebook: Notebook) -> Chapter | None:
    """The chapter whose exercises a notebook defines or checks, by most of them; None without."""
    names = {name for each in notebook.statements for name in each.calls | each.gives}
    names.update(name for cell, _ in notebook.broken for name in re.findall(r"\w+", cell.text))
    votes = {number: len(names.intersection(own)) for number, own in exercises().items()}
    best = max(votes, key=lambda number: votes[number])
    return chapter(best) if votes[best] else None


def answer(notebook: Notebook, of: Chapter, exercise: str) -> Answer:
    """A student's answer: the last definition of the function, the book's solution aside."""
    listed = [
        each
        for each in notebook.statements
        if exercise not in each.gives
        or not (each.of_book and _squeezed(each.text) in of.solved or STAND_IN in each.text)
    ]
    source = program(listed, exercise)
    if not source:
        return Answer(exercise, missing=_why_missing(notebook, of, exercise))
    for name, number in (each.split("@") for each in REFUSED.get(exercise, ()) if "@" in each):
        if chapter(int(number)).printed.get(name, f"def {name}(") in source:
            said = f"It calls {name} of chapter {number}, {SOLVES}."
            return Answer(exercise, missing=said, state="refused")
    notes = [f"looks unusual: {word}" for word in ODD if word in source]
    cells = dict.fromkeys(str(each.cell + 1) for each in listed if exercise in each.gives)
    if len(cells) > 1:
        notes.append(f"defined in cells {', '.join(cells)}; the last of them counts")
    if re.search(r"\bminivit\b", source.replace("minivit.shapes", "")):
        notes.append("uses minivit")
    return Answer(exercise, source, notes=tuple(notes))


def program(statements: Iterable[Statement], exercise: str) -> str:
    """The last definition of a function and what it needs, as one text; empty without any."""
    listed = list(statements)
    at = [i for i, each in enumerate(listed) if exercise in each.gives]
    return "\n".join([*(each.text for each in needed(listed, at[-1])), ""]) if at else ""


def _why_missing(notebook: Notebook, of: Chapter, exercise: str) -> str:
    for cell, complaint in notebook.broken:
        if re.search(rf"\b{exercise}\b", cell.text):
            return f"Cell {cell.number + 1}, which has {exercise}, is not Python: {complaint}."
    own = {cell.number for cell in notebook.cells if cell.id == of.cells.get(exercise)}
    held = (each.gives for each in notebook.statements if each.cell in own and not each.imports)
    if names := " and ".join(sorted(set().union(*held))):
        return f"The notebook has no {exercise}; the cell that held it defines {names}."
    return f"The notebook has no {exercise}: its cell is missing, or the function was renamed."


def solution(of: Chapter, exercise: str) -> str:
    """The source of the book's own solution."""
    for path in (BOOK / "solutions" / f"{of.name}.ipynb", BOOK / f"{of.name}.ipynb"):
        if path.exists():
            notebook = read(path)
            stubs = {cell.number for cell in notebook.cells if cell.id == of.cells[exercise]}
            listed = notebook.statements
            kept = [s for s in listed if exercise not in s.gives or s.cell not in stubs]
            if source := program(kept, exercise):
                return source
    raise LookupError(f"this checkout has no solution of {exercise}, which tells how much it asks")
