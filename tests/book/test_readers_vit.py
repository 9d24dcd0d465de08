"""The ViT that a reader builds in chapters 1 to 4 is the package's, definition by definition."""

import ast
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from book.tools.notebooks import cells, tags
from course.claims.rows import BOOK
from minivit import vit

BUILT = {
    "01_images_as_sequences": ["PatchEmbedding"],
    "02_attention": ["attention_weights", "scaled_dot_product_attention", "MultiHeadAttention"],
    "03_positions": ["Positions"],
    "04_encoder": ["MLP", "Block", "ViT"],
}
CASES = [(chapter, name) for chapter, names in BUILT.items() for name in names]


def definitions(tree):
    """The functions and classes of a module or cell, by name, without their docstrings."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for part in ast.walk(node):
                if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part):
                    part.body = part.body[1:]
            found[node.name] = ast.dump(node)
    return found


def trees(chapter):
    """The code of a chapter, without the stubs that the reader fills in."""
    code = (cell for cell in cells(BOOK / f"{chapter}.ipynb") if cell.cell_type == "code")
    return [ast.parse(cell.source) for cell in code if "exercise" not in tags(cell)]


PACKAGE = definitions(ast.parse(Path(vit.__file__).read_text(encoding="utf-8")))


def test_every_definition_but_the_sizes_is_built_in_a_chapter():
    assert sorted(name for _, name in CASES) == sorted(set(PACKAGE) - {"ViTConfig"})


@pytest.mark.parametrize(("chapter", "name"), CASES)
def test_what_the_reader_builds_is_what_the_package_has(chapter, name):
    built = [found[name] for tree in trees(chapter) if name in (found := definitions(tree))]
    assert built == [PACKAGE[name]]


def test_the_readers_vit_learns_digits():
    """From the cells' own text: the imports of chapter 4, and what it defines of the model."""
    wanted = ast.Module([], type_ignores=[])
    for node in (node for tree in trees("04_encoder")[1:] for node in tree.body):
        named = getattr(node, "name", "") in BUILT["04_encoder"]
        constant = ast.unparse(node).startswith("NORM_EPS = ")
        if named or constant or isinstance(node, ast.Import | ast.ImportFrom):
            wanted.body.append(node)
    namespace = {}
    exec(compile(wanted, "chapter 4", "exec"), namespace)

    digits = load_digits()
    images = torch.tensor(digits.images[:, None] / 16).float()
    images, labels = (images - images.mean()) / images.std(), torch.tensor(digits.target)
    torch.manual_seed(0)
    config = vit.ViTConfig(8, 2, 1, 10, dim=32, depth=2, heads=2, mlp_ratio=2)
    model = namespace["ViT"](config)
    assert type(model) is not vit.ViT
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    order = torch.randperm(len(images))
    known, new = order[500:], order[:500]
    for _ in range(300):
        batch = known[torch.randint(len(known), (64,))]
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = model.eval()(images[new]).argmax(-1) == labels[new]
    assert right.float().mean() > 0.9
