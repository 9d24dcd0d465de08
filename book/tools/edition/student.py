"""A chapter for students: its solutions taken out, its cells ready to wait for what they need."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from nbformat import NotebookNode, from_dict

from book.tools.notebooks import tags
from book.tools.portable import TITLE
from course.definitions import statements
from course.handout import MARK

# What stands in for an exercise until it is written: the package's own function of this name.
STAND_INS = {
    "patchify": "minivit.patches",
    "attention_weights": "minivit.vit",
    "scaled_dot_product_attention": "minivit.vit",
}
NOTE = "# @title Yours; until you have written it, the package's own"

SOLUTIONS = re.compile(  # where a chapter says where its solutions are
    r"\s+(?:Solutions are|A solution is) in a\s+\[notebook of (?:their|its) own\]"
    r"\(solutions/\w+\.ipynb\)(?:; that of exercise 1 stands in the chapter)?\."
)
# Sentences that are true of the whole book alone: by page, each with what students read instead.
INSTEAD = yaml.safe_load(Path(__file__).with_name("instead.yml").read_text(encoding="utf-8"))


def rewrite(texts: list[str], page: str) -> list[str]:
    """A page's text, or the texts of its cells, without what is not so for students."""
    for old, new in (sentence.values() for sentence in INSTEAD.get(page, [])):
        if sum(text.count(old) for text in texts) != 1:
            raise ValueError(f"{page} is to have once what students read otherwise: {old!r}")
        texts = [text.replace(old, new) for text in texts]
    return [SOLUTIONS.sub("", text) for text in texts]


def functions(cell: NotebookNode) -> list[str]:
    kinds = ast.FunctionDef | ast.ClassDef
    return [node.name for node in ast.parse(cell.source).body if isinstance(node, kinds)]


def in_place_of(solution: NotebookNode) -> NotebookNode | None:
    """What takes a solution's place: its imports, and the package's functions where it has them."""
    names = [name for name in functions(solution) if name in STAND_INS]
    imports = [each.text for each in statements(solution.source, number=0) if each.imports]
    if not names and not imports:
        return None
    lines = [NOTE, "from course.handout import written_or", *imports, ""]
    lines += [f'{name} = written_or(\n    {name}, "{STAND_INS[name]}"\n)' for name in names]
    return from_dict(solution | {"source": "\n".join(lines)})


def exchange(notebook: NotebookNode, page: str) -> None:
    """Changes a chapter, named by its file, into what students get.

    Above each cell stand the functions that it needs from its reader.
    """
    cells = (in_place_of(c) if "solution" in tags(c) else c for c in notebook.cells)
    notebook.cells = [cell for cell in cells if cell is not None]
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    for cell, text in zip(prose, rewrite([c.source for c in prose], page), strict=True):
        cell.source = text
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    stubs = [set(functions(c)) - set(STAND_INS) if "exercise" in tags(c) else set() for c in code]
    for cell, names in zip(code, needs([c.source for c in code], stubs), strict=True):
        if names and not cell.source.startswith("check."):
            title = TITLE.match(cell.source)
            at = title.end() if title else 0
            line = f"{MARK}{', '.join(sorted(names))}\n"
            cell.source = cell.source[:at] + line + cell.source[at:]


def needs(cells: list[str], stubs: list[set[str]]) -> list[set[str]]:
    """What each cell, or one that it builds on, needs of the functions to write."""
    waits: dict[str, set[str]] = {}  # by variable, the functions that it needs
    imported: set[str] = set()  # a module whose function is called stays the module that it was
    by_cell = []
    for code, names in zip(cells, stubs, strict=True):
        if names:
            waits |= {name: {name} for name in names}
            by_cell.append(set[str]())
            continue
        listed = statements(code, number=0)
        used = set().union(*(each.now | each.later for each in listed))
        need = set().union(*(waits.get(name, set()) for name in used))
        for each in listed:
            waits |= dict.fromkeys(each.gives if each.imports else each.gives - imported, need)
            imported |= each.gives if each.imports else set()
        for name in set(acted_on(ast.parse(code))) - imported:
            waits[name] = waits.get(name, set()) | need
        by_cell.append(need)
    return by_cell


def acted_on(tree: ast.Module) -> Iterator[str]:
    """Variables whose method stands alone on a line, which may change them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(part := node.value, ast.Call):
            while isinstance(part, ast.Subscript | ast.Attribute | ast.Call):
                part = part.func if isinstance(part, ast.Call) else part.value
            if isinstance(part, ast.Name):
                yield part.id
