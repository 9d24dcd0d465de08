"""What of a notebook a function needs: its definition, and those of the names that it uses.

The rest of a notebook is not run. So what raises, loops or prints in other cells does no harm, a
notebook whose cells were never run is as good as another, and whatever a cell does to the checks
has no effect. Definitions are statements that give names a value: ``def``, ``class``, ``import``,
assignments, and blocks such as ``if`` and ``try`` that hold some.
"""

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell."""

    node: ast.stmt
    text: str
    cell: int

    @cached_property
    def gives(self) -> set[str]:
        """Names that it gives a value, or changes the value of."""
        return set(self._names()[0]) | self._changes

    @cached_property
    def replaces(self) -> bool:
        """Whether what its names stood for before does not matter."""
        simple = ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Assign
        return isinstance(self.node, simple) and not self.gives & (self.now | self._changes)

    @property
    def imports(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def now(self) -> set[str]:
        """Names that it reads when it runs."""
        return self._names()[1]

    @property
    def later(self) -> set[str]:
        """Names that functions in it read when they are called."""
        return self._names()[2]

    @cached_property
    def calls(self) -> set[str]:
        """Names x of all calls check.x(...)."""
        return {
            node.func.attr
            for node in ast.walk(self.node)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "check"
        }

    @cached_property
    def _changes(self) -> set[str]:
        """Names x of x += 1, x[0] = 1 and x.y = 1."""
        changed = set()
        for node in ast.walk(self.node):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                changed.add(node.target.id)
            if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
                root: ast.expr = node
                while isinstance(root, ast.Subscript | ast.Attribute):
                    root = root.value
                changed |= {root.id} if isinstance(root, ast.Name) else set()
        local = isinstance(self.node, ast.FunctionDef | ast.ClassDef)
        return set() if local else changed

    def _names(self) -> tuple[set[str], set[str], set[str]]:
        if "names" not in self.__dict__:
            self.__dict__["names"] = _names(symtable.symtable(self.text, "cell", "exec"))
        return self.__dict__["names"]


def _names(table: symtable.SymbolTable) -> tuple[set[str], set[str], set[str]]:
    symbols = table.get_symbols()
    gives = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    now = {s.get_name() for s in symbols if s.is_referenced()}
    later = set()
    for inner in _inside(table):
        found = {s.get_name() for s in inner.get_symbols() if s.is_global() and s.is_referenced()}
        if inner.get_type() == "class":
            now |= found
        else:
            later |= found
    return gives, now, later


def _inside(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for inner in table.get_children():
        yield inner
        yield from _inside(inner)


def statements(cell: str, number: int) -> list[Statement]:
    """The statements of a cell that holds Python alone.

    Raises:
        SyntaxError: It does not.
    """
    lines = cell.splitlines()
    nodes = ast.parse(cell).body
    found = []
    for before, node, after in zip([None, *nodes], nodes, [*nodes[1:], None], strict=False):
        decorated = getattr(node, "decorator_list", None) or [node]
        first, last = decorated[0].lineno, node.end_lineno or node.lineno
        shared = (before and before.end_lineno == first) or (after and after.lineno == last)
        text = ast.unparse(node) if shared else "\n".join(lines[first - 1 : last])
        found.append(Statement(node, text, number))
    return found


def needed(found: list[Statement], target: int) -> list[Statement]:
    """The statement at an index and those that its names need, in the notebook's order.

    A name that a function reads when it is called is looked for up to the last cell that calls a
    check, or the function itself, whichever is later; one that is read at once, before it.
    """
    gives = found[target].gives
    end = max([target, *(i for i, each in enumerate(found) if each.calls & gives)]) + 1
    chosen: set[int] = set()
    waiting = [target]
    while waiting:
        index = waiting.pop()
        if index in chosen:
            continue
        chosen.add(index)
        each = found[index]
        earlier = each.gives if not each.replaces else set()
        for name in each.now | earlier:
            waiting += _given(found, name, index) or _given(found, name, len(found))
        for name in each.later - gives:
            waiting += _given(found, name, end) or _given(found, name, len(found))
    return [found[index] for index in sorted(chosen)]


def _given(found: list[Statement], name: str, end: int) -> list[int]:
    """Indices below end of what gives the name its value: the last, and what that changes."""
    given = []
    for index in reversed(range(end)):
        if name in found[index].gives:
            given.append(index)
            if found[index].replaces:
                break
    return given
