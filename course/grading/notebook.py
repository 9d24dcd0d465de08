"""Reads notebooks that strangers wrote; one that is none gets one clear sentence."""

import json
from dataclasses import dataclass
from pathlib import Path

from course.definitions import Statement, statements

LARGEST = 100 * 2**20  # bytes, outputs with pictures included
MOST_CODE = 2 * 2**20  # characters; a chapter has 0.1 million
TRANSPARENT = ("%%time", "%%capture", "%%prun")  # magics under which a cell is run as it stands


class Unreadable(Exception):
    """A file is no notebook; the text says in a sentence what it is."""


@dataclass(frozen=True)
class Cell:
    """A cell of code: its text, its id where it has one, and its number among all cells."""

    text: str
    id: str
    number: int


@dataclass(frozen=True)
class Notebook:
    """What a notebook defines; ``broken``: cells that are not Python, with what Python says."""

    cells: tuple[Cell, ...]
    statements: tuple[Statement, ...]
    broken: tuple[tuple[Cell, str], ...]


def read(path: Path) -> Notebook:
    """The code of a notebook."""
    cells = _cells(path)
    listed: list[Statement] = []
    broken = []
    for cell in cells:
        try:
            listed += statements(_python(cell.text), cell.number)
        except SyntaxError as error:
            broken.append((cell, f"{error.msg}, line {error.lineno}"))
        except (ValueError, RecursionError, MemoryError) as error:
            broken.append((cell, str(error)))
    return Notebook(cells, tuple(listed), tuple(broken))


def _cells(path: Path) -> tuple[Cell, ...]:
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise Unreadable(f"The file has {size / 2**20:.0f} MB; a notebook never needs 100.")
        if not size:
            raise Unreadable("The file is empty.")
        loaded = json.loads(path.read_bytes())
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"The file is no notebook, which is JSON: {error}.") from None
    match loaded:
        case {"cells": list(listed)}:
            pass
        case {"worksheets": [{"cells": list()}, *_]}:
            raise Unreadable("The notebook's format is older than version 4: save it again.")
        case _:
            raise Unreadable("The file is JSON, but no notebook: it has no list of cells.")
    cells = tuple(
        Cell(_text(cell["source"]), str(cell.get("id", "")), number)
        for number, cell in enumerate(listed)
        if isinstance(cell, dict) and cell.get("cell_type") == "code" and "source" in cell
    )
    if not any(cell.text.strip() for cell in cells):
        raise Unreadable("The notebook has no code.")
    if sum(len(cell.text) for cell in cells) > MOST_CODE:
        raise Unreadable("The notebook has more than 2 MB of code.")
    return cells


def _text(source: object) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def _python(text: str) -> str:
    """A cell without what IPython alone understands: magics, shell commands, question marks."""
    from IPython.core.inputtransformer2 import TransformerManager

    first, _, rest = text.lstrip().partition("\n")
    if first.startswith("%%"):
        text = rest if first.split()[0] in TRANSPARENT else ""
    return TransformerManager().transform_cell(text)
