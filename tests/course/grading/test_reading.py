"""What is taken out of a notebook: the function asked for, and what that needs."""

import json

import nbformat
import pytest

from book.tools.edition.student import exchange
from course.definitions import needed, statements
from course.grading.answers import BOOK, answer, chapter, chapter_of
from course.grading.grade import Rules, grade
from course.grading.handed_in import Submission
from course.grading.notebook import Unreadable, read


@pytest.mark.parametrize(("cells", "expected"), [
    (["x = 1\n1 / 0", "def f(a):\n    x = a\n    return x"], "def f(a):\n    x = a\n    return x"),
    (["x = 1", "x = 2", "def f():\n    return x"], "x = 2\ndef f():\n    return x"),
    (["x = 1\nx += 1", "def f():\n    return x"], "x = 1\nx += 1\ndef f():\n    return x"),
    (["d = {}\nd['k'] = 1", "def f():\n    return d"], "d = {}\nd['k'] = 1\ndef f():\n    return d"),
    (["import math as m, os", "f = lambda: m.pi"], "import math as m, os\nf = lambda: m.pi"),
    (["def f():\n    return g()", "def g():\n    pass"], "def f():\n    return g()\ndef g():\n    pass"),
    (["try:\n    import a\nexcept ImportError:\n    a = None", "def f():\n    a"], "try:\n    import a\nexcept ImportError:\n    a = None\ndef f():\n    a"),
    (["n = 3", "def f(k=n):\n    pass", "n = 4"], "n = 3\ndef f(k=n):\n    pass"),
    (["n = 3", "def f():\n    n", "check.f(f)", "n = 4"], "n = 3\ndef f():\n    n"),
    (["while True:\n    pass", "@cache\ndef f(): pass"], "@cache\ndef f(): pass"),
    (["a = 1; b = 2", "def f(): return b"], "b = 2\ndef f(): return b"),
])  # fmt: skip
def test_a_slice_holds_what_a_function_needs_and_no_more(cells, expected):
    listed = [each for number, cell in enumerate(cells) for each in statements(cell, number)]
    target = max(i for i, each in enumerate(listed) if "f" in each.gives)
    assert "\n".join(each.text for each in needed(listed, target)) == expected


def written(tmp_path, *cells):
    code = [{"cell_type": "code", "source": text} for text in cells]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": code}), encoding="utf-8")
    return path


def test_what_is_no_notebook_is_refused_in_one_sentence(tmp_path):
    for content, reason in [
        ("", "The file is empty."),
        ("PK zip", "The file is no notebook, which is JSON"),
        ("[" * 100_000, "The file is no notebook"),
        ("[1]", "it has no list of cells"),
        ('{"worksheets": [{"cells": []}]}', "older than version 4"),
        ('{"cells": [{"cell_type": "code", "source": null}]}', "The notebook has no code."),
        (json.dumps({"cells": [{"cell_type": "code", "source": "#" * 3_000_000}]}), "2 MB of code"),
    ]:
        (tmp_path / "a.ipynb").write_text(content, encoding="utf-8")
        with pytest.raises(Unreadable, match=reason) as raised:
            read(tmp_path / "a.ipynb")
        assert "\n" not in str(raised.value)
    with pytest.raises(Unreadable, match="cannot be read"):
        read(tmp_path)  # a folder may be called like a notebook


def test_magics_are_left_out_and_a_broken_cell_costs_no_other(tmp_path):
    cells = ("%matplotlib inline\n%%bad", "%%time\nx = 1\n!ls", "%%html\n<b>", "z = 2")
    broken = ("y = (", "def g(a, a): pass", "nonlocal x", "\0")
    notebook = read(written(tmp_path, *cells, *broken, 5))
    assert {name for each in notebook.statements for name in each.gives} == {"x", "z"}
    assert [cell.number for cell, _ in notebook.broken] == [4, 5, 6, 7]


def test_a_chapter_is_known_by_its_exercises(tmp_path):
    assert chapter_of(read(next(BOOK.glob("05_*.ipynb")))).number == 5
    assert chapter_of(read(written(tmp_path, "check.multi_head(mine)"))).number == 2
    assert chapter_of(read(written(tmp_path, "print(1)"))) is None
    other = Submission(next(BOOK.glob("05_*.ipynb")), "a")
    assert "00_in_an_hour was asked for" in grade(other, Rules(chapter=0)).problem


def test_the_books_own_solution_and_what_stands_in_for_it_are_nobodys_answer(tmp_path):
    notebook = read(next(BOOK.glob("03_*.ipynb")))
    assert "raise NotImplementedError" in answer(notebook, chapter(3), "add_positions").source
    handed_out = nbformat.read(next(BOOK.glob("02_*.ipynb")), as_version=4)
    exchange(handed_out, "02_attention")
    nbformat.write(handed_out, tmp_path / "a.ipynb")
    notebook = read(tmp_path / "a.ipynb")
    assert any("written_or(" in each.text for each in notebook.statements)
    for name in chapter(2).exercises:
        source = answer(notebook, chapter(2), name).source
        assert source.endswith("raise NotImplementedError\n") and "written_or" not in source


def test_what_a_teacher_should_look_at_is_noted(tmp_path):
    looks = "import minivit, sys\ndef add_positions(a): return minivit.f(sys._getframe())"
    path = written(tmp_path, "def add_positions(a): return a", looks)
    twice = "defined in cells 1, 2; the last of them counts"
    notes = answer(read(path), chapter(3), "add_positions").notes
    assert notes == ("looks unusual: _getframe", twice, "uses minivit")
