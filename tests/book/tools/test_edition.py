"""Which pages and cells an edition has, and what students get of a chapter."""

import re

import nbformat
import pytest
from nbclient import NotebookClient

from book.tools.address import ROOT
from book.tools.edition.__main__ import arguments
from book.tools.edition.contents import FOR_STUDENTS, chosen, missing, number, pages, remixed_map
from book.tools.edition.student import INSTEAD, exchange, needs, rewrite
from book.tools.edition.tree import Edition, load, table
from book.tools.notebooks import cells, read, tags
from book.tools.roles import places
from book.tools.wheels import NAMES
from course import check
from course.handout import written, written_or
from minivit import patches

WHOLE = load("_toc.yml")
MAP = load("book/chapters.yml")
SOME = frozenset({1, 2, 4, 14})


@pytest.mark.parametrize("text", ["", "0", "29", "1,99", "1;2", "two", "1,,2", "-1"])
def test_chapters_that_are_not_there_get_one_sentence(text, capsys):
    with pytest.raises(SystemExit) as ended:
        arguments(["--chapters", text])
    assert ended.value.code == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "1 to 28" in sentence and sentence.endswith(f"got {text!r}")


def test_some_chapters_bring_what_is_no_chapter_and_students_get_no_solutions():
    kept, left_out = table(Edition(chapters=chosen("14, 1,2,4", WHOLE)))
    assert {number(page) for page in pages(kept)} - {None, 0} == SOME
    assert sum(page.startswith("book/solutions/") for page in pages(kept)) == len(SOME)
    assert {"index", "book/ledger", "book/00_in_an_hour", "book/part_3"} <= set(pages(kept))
    assert {"book/part_2", "book/part_4", "book/09_where_attention_looks"} <= left_out
    captions = [part.get("caption", "") for part in kept["parts"]]
    assert "III. Turn it around" in captions and "II. See" not in captions
    assert all(part["chapters"] for part in kept["parts"])
    kept, left_out = table(Edition(student=True))
    assert not any("solutions" in page for page in pages(kept))
    assert {page for page in pages(kept) if "teaching" in page} == set(FOR_STUDENTS)
    assert "book/teaching/exam_marking" in left_out
    assert {number(page) for page in pages(kept)} - {None} == set(range(29))


def test_the_map_keeps_the_places_of_parts_and_the_steps_that_are_left():
    kept = remixed_map(MAP, SOME)
    assert [part["title"] for part in kept["parts"]] == [part["title"] for part in MAP["parts"]]
    assert [len(part["chapters"]) for part in kept["parts"]] == [3, 0, 1, 0, 0, 0]
    steps = {step["chapter"] for visit in kept["visits"] for step in visit["steps"]}
    assert steps and steps <= SOME
    assert missing(MAP, SOME) == {4: [3], 14: [12, 13]}
    attention = ROOT / "book/02_attention.ipynb"
    assert places()["fig-rebuilt"].page == places()["eq-attention"].page == attention
    assert places()["verdicts"].page == ROOT / "index.md"


@pytest.mark.parametrize("given", ["https://a.b/book", "https://a.b/book/"])
def test_the_address_of_a_site_may_end_with_a_slash_or_not(given):
    assert arguments(["--site", given]).site == "https://a.b/book/"


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
    NotebookClient(notebook, allow_errors=True, resources={"metadata": {"path": ROOT}}).execute()
    for cell, expected in zip(notebook.cells, outputs.values(), strict=True):
        texts = [o.get("text") or o.get("ename") or o.data["text/plain"] for o in cell.outputs]
        assert "".join(texts) == expected, cell.source


def test_a_solution_does_not_replace_what_the_reader_has_written():
    text = "@check.solution\ndef f(x):\n    return 'the book'"
    for stub, expected in ("raise NotImplementedError", "the book"), ("return 'mine'", "mine"):
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
