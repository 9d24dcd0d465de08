"""What students get of a chapter, how its cells wait for what is not written yet, and what is handed out."""

import re

import nbformat
import pytest
from nbclient import NotebookClient

from book.tools.address import ROOT
from book.tools.edition.student import INSTEAD, exchange, needs, rewrite
from book.tools.notebooks import cells, read, tags
from book.tools.wheels import NAMES
from course import check
from course.handout import written, written_or
from minivit import patches


def stub(x):
    """To be written."""
    raise NotImplementedError


def patchify(x):
    raise NotImplementedError


@pytest.mark.parametrize("path", sorted(ROOT.glob("book/*.ipynb")), ids=lambda path: path.stem)
def test_a_chapter_for_students_has_its_stubs_and_no_solution(path):
    before, after = read(path), read(path)
    exchange(after, path.stem)
    nbformat.validate(after)
    stubs = [cell.source for cell in before.cells if "exercise" in tags(cell)]
    assert [cell.source for cell in after.cells if "exercise" in tags(cell)] == stubs
    text = "\n".join(cell.source for cell in after.cells)
    assert "solutions/" not in text and "A solution;" not in text
    # What stands in for a solution has no body of a function.
    assert not any("def " in cell.source for cell in after.cells if "solution" in tags(cell))


def test_a_sentence_that_is_to_be_replaced_must_be_there_once():
    old, new = INSTEAD["how_to_read"][0].values()
    assert rewrite(["A.", f"Hints\n   {old} that."], "how_to_read")[1] == f"Hints\n   {new} that."
    for texts in (["nothing of it"], [old, old]):
        with pytest.raises(ValueError, match="how_to_read is to have once"):
            rewrite(texts, "how_to_read")


def test_a_cell_needs_what_the_cells_before_it_need_for_it():
    cells = {
        "import math": set(),
        "def f(x): raise NotImplementedError": set(),
        "a = math.sqrt(4)": set(),
        "b = f(a)": {"f"},
        "c = [g(b) for g in (abs,)]": {"f"},
        "def h(b): return b + 1": set(),  # another b
        "d = {}\nd['a'] = h(a)": set(),
        "d['b'] = c": {"f"},
        "print(d)": {"f"},
        "math.gcd(int(b), 2)": {"f"},
        "math.pi": set(),  # a call of a module's function leaves the module as it is
        "b = 1": set(),
        "b + 1": set(),
    }
    stubs = [{"f"} if code.startswith("def f") else set() for code in cells]
    assert needs(list(cells), stubs) == list(cells.values())


def test_a_stub_is_not_written_and_the_packages_own_stands_in_for_it():
    def half(x):
        if x:
            raise NotImplementedError("later")
        return abs(x)

    assert not written(stub) and not written(None)
    assert written(len) and written(lambda x: x) and written(half)
    assert written_or(half, "minivit.patches") is half
    assert written_or(patchify, "minivit.patches") is patches.patchify


def test_in_a_notebook_cells_wait_and_then_run():
    """A cell is tried, and its mistakes are hidden only while something is not written."""
    waits = "This cell waits for your f.\n"
    outputs = {
        "from course import handout\nhandout.wait()": "",
        "def f(x):\n    raise NotImplementedError": "",
        "# needs: f\ny = f(1)\ny": waits,
        "# needs: f\nz = 2\nz": "2",  # may need it, does not
        "# needs: f\ny + z": waits,
        "def f(x):\n    return x + 41": "",
        "# needs: f\ny = f(1)\ny # again": "42",
        "# needs: f\ny + z # again": "44",
        "# needs: f\n1 / 0": "ZeroDivisionError",
    }
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in outputs])
    resources = {"metadata": {"path": ROOT}}
    NotebookClient(notebook, allow_errors=True, resources=resources).execute()
    for cell, expected in zip(notebook.cells, outputs.values(), strict=True):
        texts = [o.get("text") or o.get("ename") or o.data["text/plain"] for o in cell.outputs]
        assert "".join(texts) == expected, cell.source


def test_a_solution_does_not_replace_what_the_reader_has_written():
    text = "@check.solution\ndef f(x):\n    return 'the book'"
    for stub, expected in {
        "raise NotImplementedError": "the book",
        "return 'mine'": "mine",
    }.items():
        space = {"check": check}
        exec(f"def f(x):\n    {stub}", space)
        exec(text, space)
        assert space["f"](1) == expected
        exec(text.replace("book", "book, changed"), space)
        assert space["f"](1) == expected.replace("book", "book, changed")


CHAPTERS = sorted(path.name for path in ROOT.glob("book/*.ipynb"))


def test_it_has_notebooks_with_folded_code_packages_and_nothing_else_that_python_reads(handed_out):
    assert sorted(path.name for path in handed_out.glob("*.ipynb")) == CHAPTERS
    assert {path.name for path in handed_out.glob("wheels/*")} == set(NAMES)
    assert not list(handed_out.rglob("*.py"))
    for path in handed_out.glob("*.ipynb"):
        title, line, *_ = cells(path)
        assert title.source.startswith("# ") and line.source.startswith("%pip install wheels/")
        folded = [cell for cell in cells(path) if "hide-input" in tags(cell)]
        assert folded and all(cell.metadata.jupyter.source_hidden for cell in folded)
    pins = set(re.findall(r"^([\w.-]+)==", (handed_out / "requirements.txt").read_text(), re.M))
    assert {"torch", "jupyterlab", "PyYAML"} <= pins
    assert not {"sphinx", "pytest", "timm"} & pins


@pytest.mark.full
@pytest.mark.parametrize("name", CHAPTERS)
def test_each_notebook_runs_from_top_to_bottom(handed_out, packages, name, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(packages))
    path = handed_out / name
    notebook = read(path)
    del notebook.cells[1]  # the packages are unpacked
    resources = {"metadata": {"path": path.parent}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        printed = " ".join(out.get("text", "") for out in cell.get("outputs", []))
        if "This cell waits for your" in printed:
            assert "# needs: " in cell.source
        if cell.source.startswith("check."):
            (out,) = cell.outputs
            assert "not attempted yet" in out.data["text/plain"]
