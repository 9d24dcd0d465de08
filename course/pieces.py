"""Pieces of a reader's ViT in one file, ``my_vit.py``: how it is read, changed and written.

A piece stands below a comment with its chapter, and whether it is the reader's or filled from the
book (``book_vit.py``). It is replaced, with the functions that it calls; all else in the file
stays. ``my_vit.py.before`` has every version before, dated, the newest last.
"""

import ast
import os
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from course.definitions import Statement, needed, statements
from minivit.files import atomic_write

PIECES = {"patchify": 1, "multi_head": 2, "block": 4, "ViT": 4}  # their chapters, in reading order
MARK = re.compile(r"^(# Chapter \d+: (\w+), .*\n)", re.MULTILINE)
BOOK = Path(__file__).with_name("book_vit.py").read_text(encoding="utf-8")

Sections = dict[str, str]  # by piece, its comment and code; "": what stands above the first


class NotKept(ValueError):
    """Why a piece cannot stand in the file, in a sentence for the reader."""


def place() -> Path:
    """Where the file lies: beside the notebook, or where the environment variable MY_VIT says."""
    path = Path(os.environ.get("MY_VIT", "my_vit.py")).absolute()
    return path / "my_vit.py" if path.is_dir() else path


def sections(text: str) -> Sections:
    head, *rest = MARK.split(text)
    triples = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    return {"": head} | {name: mark + code for mark, name, code in triples}


def joined(parts: Sections) -> str:
    order = ["", *PIECES, *parts]
    return "\n\n\n".join(parts[n].rstrip() for n in sorted(parts, key=order.index)) + "\n"


def read() -> Sections:
    """The sections of the file, or of a new one. NotKept if it is no Python."""
    path = place()
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else sections(BOOK)[""]
        ast.parse(text)
    except (OSError, ValueError, SyntaxError) as error:
        raise NotKept(
            f"{path.name} cannot be read as Python ({error}), and nothing in it was changed. Mend "
            "it or move it away, then run this cell again"
        ) from error
    return sections(text)


def write(parts: Sections) -> None:
    """Writes the file, whole or not at all, and what stood there to the end of ``.before``."""
    path, text = place(), joined(parts).encode()
    before = path.with_name(f"{path.name}.before")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        old, older = (p.read_bytes() if p.exists() else b"" for p in (path, before))
        if old and old != text:
            with atomic_write(before) as scratch:
                replaced = f"# Replaced on {datetime.now():%Y-%m-%d at %H:%M}:\n".encode()
                scratch.write_bytes(b"\n\n".join(filter(None, (older, replaced + old))))
        with atomic_write(path) as scratch:
            scratch.write_bytes(text)
    except OSError as error:
        raise NotKept(f"{path} cannot be written ({error})") from error


def executed(parts: Sections) -> ModuleType:
    """The module that the file would be."""
    module = ModuleType("my_vit")
    exec(compile(joined(parts), str(place()), "exec"), vars(module))
    return module


def put(parts: Sections, name: str, cells: list[str], space: dict[str, Any]) -> Sections:
    """The sections with a piece, from the cells and variables of a notebook or from the book.

    With it come the functions that it calls, and other pieces where the file has none.
    """
    book = sections(BOOK)
    if name in space and not hasattr(space[name], "of_the_book"):
        imports, code = gathered(cells, name, space)
        section = f"# Chapter {PIECES[name]}: {name}, mine.\n" + "\n\n\n".join(code)
    else:
        imports, section = re.findall(r"^(?:import|from) .*", book[""], re.M), book[name]
    listed = statements(section, 0)
    theirs = [(n, one) for n in parts.keys() - {name, ""} for one in statements(parts[n], 0)]
    for other, one in theirs:
        for again in listed:
            if one.gives & again.gives and one.text != again.text:
                names = ", ".join(one.gives & again.gives)
                raise NotKept(f"{other} has another {names} in {place().name}: rename one")
    above = parts[""].rstrip().splitlines()
    above += [line for line in dict.fromkeys(imports) if line not in above]
    new = parts | {"": "\n".join(above), name: section}
    for other in PIECES:
        if other not in new and any(other in one.now | one.later for one in listed):
            new = put(new, other, cells, space)
    return new


def gathered(cells: list[str], name: str, space: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The imports that a reader's piece needs, and its code with that of what it calls."""
    listed: list[Statement] = []
    for number, cell in enumerate(cells):
        with suppress(SyntaxError, ValueError):
            for one in statements(cell, number):
                books = all(hasattr(space.get(given), "of_the_book") for given in one.gives)
                kept = one.imports or books or "@check.solution" not in cell
                others = one.gives & PIECES.keys() - {name}
                if kept and not others and "written_or(" not in one.text:
                    listed.append(one)
    targets = [i for i, one in enumerate(listed) if name in one.gives]
    if not targets:
        raise NotKept("the cell that defines it has not run since Python was started")
    chosen = needed(listed, targets[-1])
    used = set[str]().union(*(one.now | one.later for one in chosen))
    imports, code = [], []
    for one in chosen:
        (node,) = ast.parse(one.text).body
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name.partition(".")[0]) in used:
                    node.names = [alias]
                    imports.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) or constant(node):
            code.append(one.text)
        else:
            names = ", ".join(sorted(one.gives))
            raise NotKept(f"{name} uses {names}, which a cell computes: compute it inside {name}")
    return imports, code


def constant(node: ast.stmt) -> bool:
    """Whether a statement gives names a constant, or a lambda."""
    value = getattr(node, "value", None)
    with suppress(ValueError):
        return isinstance(value, ast.Lambda) or bool(value and [ast.literal_eval(value)])
    return False
