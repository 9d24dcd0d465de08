"""Reads notebooks that strangers wrote; one that is none gets one clear sentence."""

import ast
import json
import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from course.definitions import Statement, statements
from course.grading import isolation

SECONDS, MEGABYTES = 60, 2000  # that reading a file may take
LARGEST = 100 * 2**20  # bytes, outputs with pictures included
MOST_CODE = 2 * 2**20  # characters; a chapter has 0.1 million
CELL = re.compile(r"(?m)^# (?:%%|In ?\[).*$")  # above a cell, in a file of Python
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


def read_apart(path: Path) -> Notebook:
    """As read, in a process that ends where reading takes too much, or breaks Python itself."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "IPython.core.inputtransformer2"])
    try:
        with ProcessPoolExecutor(1, context, isolation.limit, (SECONDS, MEGABYTES)) as pool:
            return pool.submit(read, path).result()
    except (BrokenProcessPool, MemoryError):
        limits = f"{SECONDS} s or {MEGABYTES} MB"
        raise Unreadable(f"Reading it takes more than {limits}, or ends Python.") from None


def read(path: Path) -> Notebook:
    """The code of a notebook, or of a file of Python that was made of one."""
    cells = _cells(path)
    listed: list[Statement] = []
    broken = []
    for cell in cells:
        try:
            listed += statements(_python(cell.text), cell.number)
        except SyntaxError as error:
            broken.append((cell, f"{error.msg}, line {error.lineno}"))
        except Exception as error:  # as IPython's RuntimeError for too many magics
            broken.append((cell, str(error)))
    return Notebook(cells, tuple(listed), tuple(broken))


def _cells(path: Path) -> tuple[Cell, ...]:
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise Unreadable(f"The file has {size / 2**20:.0f} MB; a notebook never needs 100.")
        if not size:
            raise Unreadable("The file is empty.")
        text = _decoded(path.read_bytes())
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from None
    kind = path.suffix.lower()
    if kind == ".ipynb" or text.lstrip().startswith("{"):
        cells = _cells_of_json(text)
    elif kind in (".py", ".txt"):
        cells = tuple(Cell(part, "", number) for number, part in enumerate(_parts(text)))
    else:
        raise Unreadable(f"A {kind or 'file without a type'} is not graded: hand in the notebook.")
    if not any(cell.text.strip() for cell in cells):
        raise Unreadable("The notebook has no code.")
    if sum(len(cell.text) for cell in cells) > MOST_CODE:
        raise Unreadable("The notebook has more than 2 MB of code.")
    return cells


def _decoded(data: bytes) -> str:
    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError:
        return data.decode("latin-1")  # which fits all bytes; at most a comment suffers


def _parts(text: str) -> list[str]:
    """The cells of what Colab, Jupyter or an editor make of a notebook: whole, where it is right.

    Otherwise paragraphs, so that one that is broken costs no other.
    """
    if re.search(CELL, text):
        return re.split(CELL, text)
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.split(r"\n\s*\n(?=\S)", text)
    return [text]


def _cells_of_json(text: str) -> tuple[Cell, ...]:
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"The file is no notebook, which is JSON: {error}.") from None
    match loaded:
        case {"cells": list(listed)}:
            pass
        case {"worksheets": [{"cells": list()}, *_]}:
            raise Unreadable("The notebook's format is older than version 4: save it again.")
        case _:
            raise Unreadable("The file is JSON, but no notebook: it has no list of cells.")
    return tuple(
        Cell(_text(cell["source"]), str(cell.get("id", "")), number)
        for number, cell in enumerate(listed)
        if isinstance(cell, dict) and cell.get("cell_type") == "code" and "source" in cell
    )


def _text(source: object) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def _python(text: str) -> str:
    """A cell without what IPython alone understands: magics, shell commands, question marks."""
    from IPython.core.inputtransformer2 import TransformerManager

    first, _, rest = text.lstrip().partition("\n")
    if first.startswith("%%"):
        text = rest if first.split()[0] in TRANSPARENT else ""
    return TransformerManager().transform_cell(text)
