"""The reader's own functions in a notebook: a solution that follows does not replace them.

In notebooks that are handed out without solutions, cells wait for them: where one that begins with
``# needs: patchify`` fails while the reader has not written ``patchify`` yet, it says that it
waits, instead of a traceback, and the notebook goes on.
"""

import ast
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

MARK = "# needs: "
NOTHING = ("NotImplementedError",)  # the names that a stub uses


def written(thing: object) -> bool:
    """Whether a function, or all of a class, does more than raise ``NotImplementedError``."""
    parts = vars(thing).values() if isinstance(thing, type) else [thing]
    codes = (getattr(part, "__code__", None) for part in parts)
    return thing is not None and all(c is None or c.co_names != NOTHING for c in codes)


def solution(thing: Any) -> Any:
    """Keeps the reader's function or class of this name, where it is written, not the book's."""
    maker = vars(thing)["__init__"] if isinstance(thing, type) else thing
    own = maker.__globals__.get(thing.__name__)
    if written(own) and not hasattr(own, "of_the_book"):
        return own
    thing.of_the_book = True
    return thing


def written_or(function: Callable, module: str) -> Callable:
    """The reader's function once it is written; until then the one of this name in a module."""
    if written(function):
        return function
    return getattr(importlib.import_module(module), function.__name__)


def told(names: str) -> None:
    """Says for whose functions a cell waits; a figure that it has begun is not shown."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    print(f"This cell waits for your {names}.")


class Waiting(ast.NodeTransformer):
    """What IPython does with each cell before it runs, given the notebook's variables."""

    def __init__(self, variables: Mapping[str, Any]):
        self.variables = variables
        self.needed: list[str] = []

    def note(self, lines: list[str]) -> list[str]:
        """Reads from a cell's first lines what it needs; the lines stay as they are."""
        marked = [line.removeprefix(MARK) for line in lines[:2] if line.startswith(MARK)]
        self.needed = marked[0].split(", ") if marked else []
        return lines

    def visit_Module(self, cell: ast.Module) -> ast.Module:
        """The cell, or one that tries it and says that it waits."""
        names = map(str.strip, self.needed)
        missing = [name for name in names if not written(self.variables.get(name))]
        if not missing or not cell.body:
            return cell
        last = cell.body[-1]
        if isinstance(last, ast.Expr):  # within a try, its value would not be shown
            show = ast.parse("__import__('sys').displayhook", mode="eval").body
            last.value = ast.Call(show, [last.value], [])
        tell = f"__import__('course.handout').handout.told({' and '.join(missing)!r})"
        waits = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, ast.parse(tell).body)
        cell.body = [ast.Try(cell.body, [waits], [], [])]
        return ast.fix_missing_locations(cell)


def wait() -> None:
    """Lets the cells of this notebook wait; outside a notebook it does nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        waiting = Waiting(shell.user_ns)
        shell.input_transformers_cleanup.append(waiting.note)
        shell.ast_transformers.append(waiting)
