"""The figures of the book's notebooks, and the files in which ``book.tools.figures`` drew them again."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat

from book._ext.chapters import names, notebook
from course.claims.rows import BOOK

DRAWN = BOOK.parent / "_build/figures"
# What has figures, too, and is not on the map of the chapters.
FIRST, LAST = "00_in_an_hour", "recipes"


def notebooks() -> list[str]:
    """Names of the notebooks that this book has and that have figures, in reading order."""
    return [FIRST, *names().values(), LAST]


@cache
def figures() -> tuple[tuple[str, nbformat.NotebookNode, dict], ...]:
    """Every named figure in reading order: its notebook, its cell, its output."""
    return tuple(
        (chapter, cell, output["data"])
        for chapter in notebooks()
        for cell in nbformat.read(notebook(chapter), as_version=4).cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
        and "figure" in cell.metadata.get("mystnb", {})
    )


def some() -> bool:
    """Whether figures were drawn again."""
    return any(DRAWN.glob("*.svg"))


def files() -> Iterator[Path]:
    """The drawn figures that this book has."""
    for _, cell, _ in figures():
        name = cell.metadata["mystnb"]["figure"]["name"]
        yield from sorted(DRAWN.glob(f"{name}.*"))
