"""What of a notebook a function needs: its definition, and those of the names that it uses.

The rest of a notebook is not run: what raises, loops or prints in other cells does no harm, and
what a cell does to the checks has no effect. Definitions are statements that give names a value:
``def``, ``class``, ``import``, assignments, and blocks such as ``if`` and ``try`` that hold some.
"""

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell, and the names in it."""

    text: str
    cell: int
    gives: set[str]  # names that it gives a value, or changes the value of
    replaces: bool  # whether what these names stood for before does not matter
    now: set[str]  # names that it reads when it runs
    later: set[str]  # names that functions in it read when they are called
    calls: set[str]  # names x of all calls check.x(...)
    imports: bool
    of_book: bool = False  # whether ``check.solution`` stands above it


def statements(cell: str, number: int) -> list[Statement]:
    """The statements of a cell that holds Python alone."""
    lines = cell.splitlines()
    nodes = ast.parse(cell).body
    result = []
    for before, node, after in zip([None, *nodes], nodes, [*nodes[1:], None], strict=False):
        all_above = getattr(node, "decorator_list", [])
        above = [one for one in all_above if ast.unparse(one) != "check.solution"]
        first, last = [*above, node][0].lineno, node.end_lineno or node.lineno
        shared = (before and before.end_lineno == first) or (after and after.lineno == last)
        text = ast.unparse(node) if shared else "\n".join(lines[first - 1 : last])
        result.append(_statement(node, text, number, of_book=above != all_above))
    return result


def _statement(node: ast.stmt, text: str, number: int, of_book: bool) -> Statement:
    table = symtable.symtable(text, "cell", "exec")
    symbols = table.get_symbols()
    changes = _changed(node)
    gives = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()} | changes
    now = {s.get_name() for s in symbols if s.is_referenced()}
    later = set()
    for inner in _inside(table):
        names = {s.get_name() for s in inner.get_symbols() if s.is_global() and s.is_referenced()}
        if inner.get_type() == "class":
            now |= names
        else:
            later |= names
    calls = set()
    for part in ast.walk(node):
        match part:
            case ast.Call(ast.Attribute(ast.Name("check"), name)):
                calls.add(name)
    imports = isinstance(node, ast.Import | ast.ImportFrom)
    simple = imports or isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign)
    replaces = simple and not gives & (now | changes)
    return Statement(text, number, gives, replaces, now, later, calls, imports, of_book)


def _changed(node: ast.stmt) -> set[str]:
    """Names x of x += 1, x[0] = 1 and x.y = 1 outside functions and classes."""
    changed: set[str] = set()
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return changed
    for inner in ast.walk(node):
        root = inner.target if isinstance(inner, ast.AugAssign) else inner
        if isinstance(inner, ast.AugAssign) or isinstance(getattr(inner, "ctx", None), ast.Store):
            while isinstance(root, ast.Subscript | ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root is not inner:
                changed.add(root.id)
    return changed


def _inside(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for inner in table.get_children():
        yield inner
        yield from _inside(inner)


def needed(listed: list[Statement], target: int) -> list[Statement]:
    """The statement at an index and those that its names need, in the notebook's order.

    A name that a function reads when it is called is looked for up to the last cell that calls a
    check, or the function itself, whichever is later; one that is read at once, before it.
    """
    gives = listed[target].gives
    end = max([target, *(i for i, other in enumerate(listed) if other.calls & gives)]) + 1
    chosen: set[int] = set()
    waiting = [target]
    while waiting:
        index = waiting.pop()
        if index in chosen:
            continue
        chosen.add(index)
        statement = listed[index]
        earlier = statement.gives if not statement.replaces else set()
        for name in statement.now | earlier:
            waiting += _givers(listed, name, index) or _givers(listed, name, len(listed))
        for name in statement.later - gives:
            waiting += _givers(listed, name, end) or _givers(listed, name, len(listed))
    return [listed[index] for index in sorted(chosen)]


def _givers(listed: list[Statement], name: str, end: int) -> list[int]:
    """Indices below end of what gives the name its value: the last, and what that changes."""
    givers = []
    for index in reversed(range(end)):
        if name in listed[index].gives:
            givers.append(index)
            if listed[index].replaces:
                break
    return givers
