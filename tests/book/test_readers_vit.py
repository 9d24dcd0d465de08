"""What a reader builds in chapters 1 to 4 is what the package has, and what ``my_vit.py`` gets."""

import ast
from pathlib import Path

from book.tools.notebooks import cells, tags
from course import pieces
from course.claims.rows import BOOK
from course.pieces import PIECES, sections
from minivit import vit

BUILT = {
    "01_images_as_sequences": ["PatchEmbedding"],
    "02_attention": ["attention_weights", "scaled_dot_product_attention", "MultiHeadAttention"],
    "03_positions": ["Positions"],
    "04_encoder": ["MLP"],
}
SHOWN = {"ViTConfig", "Block", "ViT"}  # chapter 4 prints the package's own text of these


def definitions(tree):
    """The functions and classes of a module or cell, by name, without their docstrings."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for part in ast.walk(node):
                if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part):
                    part.body = part.body[1:]
            if [ast.unparse(one) for one in node.decorator_list] == ["check.solution"]:
                node.decorator_list = []
            found[node.name] = ast.dump(node)
    return found


def test_what_the_reader_builds_is_what_the_package_has():
    package = definitions(ast.parse(Path(vit.__file__).read_text(encoding="utf-8")))
    built = {}
    for chapter, names in BUILT.items():
        code = [cell for cell in cells(BOOK / f"{chapter}.ipynb") if cell.cell_type == "code"]
        own = (cell for cell in code if "exercise" not in tags(cell))  # no stub
        in_cells = [definitions(ast.parse(cell.source)) for cell in own]
        for name in names:
            (built[name],) = (cell[name] for cell in in_cells if name in cell)
    assert built == {name: text for name, text in package.items() if name not in SHOWN}


def test_what_my_vit_is_filled_with_is_what_the_chapters_have_as_solutions():
    filled = sections(pieces.BOOK)
    assert list(filled) == ["", *PIECES]
    for name, number in PIECES.items():
        (path,) = BOOK.glob(f"{number:02}_*.ipynb")
        cell = next(c for c in cells(path) if "solution" in tags(c) and f" {name}(" in c.source)
        assert definitions(ast.parse(filled[name])) == definitions(ast.parse(cell.source))
