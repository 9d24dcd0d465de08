"""Finds a student's answers in a notebook, and the book's own."""

import re
from dataclasses import dataclass

from course.grading.chapters import Chapter, solutions, squeezed
from course.grading.definitions import Statement, needed
from course.grading.notebook import Notebook

# Words that an answer has no need of. They are not forbidden, and worth a look.
ODD = ("_getframe", "inspect", "ctypes", "gc.get_", "import course", "builtins", "open(")
STAND_IN = "written_or("  # in notebooks handed out, where the book goes on with its solution


@dataclass(frozen=True)
class Answer:
    """The source of a function and of what it needs; without a source, why there is none."""

    exercise: str
    source: str = ""
    missing: str = ""
    notes: tuple[str, ...] = ()


def answer(notebook: Notebook, chapter: Chapter, exercise: str) -> Answer:
    """A student's answer: the last definition of the function, the book's solution aside."""
    book = {cell.number for cell in notebook.cells if squeezed(cell.text) in chapter.solved}
    found = [
        each
        for each in notebook.statements
        if exercise not in each.gives or not (each.cell in book or STAND_IN in each.text)
    ]
    at = [i for i, each in enumerate(found) if exercise in each.gives]
    if not at:
        return Answer(exercise, missing=_why_missing(notebook, chapter, exercise))
    source = program(found, at[-1])
    notes = [f"looks unusual: {word}" for word in ODD if word in source]
    cells = list(dict.fromkeys(found[i].cell + 1 for i in at))
    if len(cells) > 1:
        listed = ", ".join(map(str, cells))
        notes.append(f"defined in cells {listed}; the last of them counts")
    if re.search(r"\bminivit\b", source.replace("minivit.shapes", "")):
        notes.append("uses minivit")
    return Answer(exercise, source, notes=tuple(notes))


def program(found: list[Statement], target: int) -> str:
    """The statement at an index and what it needs, as one source text."""
    return "\n".join(each.text for each in needed(found, target)) + "\n"


def _why_missing(notebook: Notebook, chapter: Chapter, exercise: str) -> str:
    for cell, said in notebook.broken:
        if re.search(rf"\b{exercise}\b", cell.text):
            return f"Cell {cell.number + 1}, which has {exercise}, is not Python: {said}."
    own = {cell.number for cell in notebook.cells if cell.id == chapter.cells.get(exercise)}
    held = (each for each in notebook.statements if each.cell in own and not each.imports)
    names = sorted({name for each in held for name in each.gives})
    if names:
        listed = " and ".join(names)
        return f"The notebook has no {exercise}; the cell that held it defines {listed}."
    return f"The notebook has no {exercise}: its cell is missing, or the function was renamed."


def solution(chapter: Chapter, exercise: str) -> str:
    """The source of the book's own solution.

    Raises:
        LookupError: This checkout has none.
    """
    for notebook in solutions(chapter):
        found = list(notebook.statements)
        stub = next((c.number for c in notebook.cells if c.id == chapter.cells[exercise]), None)
        at = [i for i, each in enumerate(found) if exercise in each.gives and each.cell != stub]
        if at:
            return program(found, at[-1])
    raise LookupError(f"this checkout has no solution of {exercise}, which tells how much it asks")
