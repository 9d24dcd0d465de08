"""No part of the project is above its ceiling, imports go down only, and the counter counts."""

import pytest

from book.tools import house

TREE = {
    "minivit/__init__.py": "from minivit import vit\n",
    "minivit/vit.py": '"""A ViT.\n\nIn two parts."""\n\nimport math\n\n# a comment\nx = 1\n'
    "if x:\n    raise ValueError(\n        x\n    )\nif x:\n    x = 2\n    raise ValueError(x)\n",
    "minivit/files.py": "import minivit.vit\n\n\ndef read():\n    from minivit import surgery\n",
    "minivit/surgery.py": "import torch\n",
    "vitlab/__init__.py": "",
    "vitlab/data/__init__.py": "from vitlab.data.digits import x\n",
    "vitlab/data/digits.py": "from minivit.vit import x\n",
    "course/a.py": "import course.b\n",
    "course/b.py": "from vitlab import data\n",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def table(root):
    return {name: (value, fits) for name, value, _, fits in house.rows(root)}


def test_no_part_is_above_its_ceiling():
    assert not [row for row in house.rows() if not row[-1]]


def test_lines_files_guards_and_imports_are_counted(tree):
    rows = table(tree)
    assert rows["minivit"] == ("22 lines, 4 files", True)
    assert rows["vitlab"] == ("2 lines, 3 files", True)
    assert rows["- data"] == ("2 lines, 2 files", True)
    assert rows["all Python but tests"] == ("26 lines, 9 files", True)
    assert rows["guards"] == ("31.2% of code", False)  # five lines of sixteen
    assert rows["imports up"] == rows["import circle"] == ("none", True)


@pytest.mark.parametrize("name, text, row, value", [
    ("minivit/vit.py", "\n" * 4000, "minivit", "4,007 lines, 4 files"),
    ("minivit/vit.py", "from vitlab import data", "imports up", "minivit.vit > vitlab.data"),
    ("minivit/vit.py", "import minivit.files", "imports up", "minivit.vit > minivit.files"),
    ("vitlab/data/digits.py", "from course import b", "imports up", "vitlab.data.digits > course.b"),
    ("course/b.py", "def f():\n    from course import a", "import circle", "course.a, course.b, course.a"),
])  # fmt: skip
def test_a_planted_fault_is_seen(tree, name, text, row, value):
    (tree / name).write_text(text)
    assert table(tree)[row] == (value, False)
