"""Which cells of a notebook need functions that the reader is to write."""

import ast
import symtable
from collections.abc import Iterator


def used(table: symtable.SymbolTable) -> Iterator[str]:
    """The notebook's variables that a cell reads, in its functions, too."""
    top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (top or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from used(inner)


def changed(tree: ast.Module) -> Iterator[str]:
    """Variables of which a cell changes an entry or an attribute, or calls a method.

    Only such methods count as stand alone on a line: what they are called for is what they change.
    """
    for node in ast.walk(tree):
        part = None
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            part = node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            part = node.value.func
        while isinstance(part, ast.Subscript | ast.Attribute | ast.Call):
            part = part.func if isinstance(part, ast.Call) else part.value
        if isinstance(part, ast.Name):
            yield part.id


def needs(cells: list[str], written: list[set[str]]) -> list[set[str]]:
    """For each cell the functions that it needs, those included that cells before it need for it.

    Args:
        cells: The code of a notebook, cell by cell.
        written: For each cell, the functions that its reader is to write there.
    """
    waits: dict[str, set[str]] = {}
    imported: set[str] = set()  # a module whose function is called stays the module that it was
    found = []
    for code, mine in zip(cells, written, strict=True):
        if mine:
            waits |= {name: {name} for name in mine}
            found.append(set[str]())
            continue
        table, tree = symtable.symtable(code, "cell", "exec"), ast.parse(code)
        need = set().union(*(waits.get(name, set()) for name in used(table)))
        for symbol in table.get_symbols():
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                waits[symbol.get_name()] = need
            if symbol.is_imported():
                imported.add(symbol.get_name())
        for name in set(changed(tree)) - imported:
            waits[name] = waits.get(name, set()) | need
        found.append(need)
    return found
