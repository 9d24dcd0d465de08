"""Notebooks that leave the book: the branch ``launch``, the packages, and what a page's Python lacks."""

import os
import shutil
import subprocess
import sys

import nbformat
import pytest

from book.tools import notebooks
from book.tools.address import ROOT
from book.tools.launch import alone, launch
from book.tools.notebooks import cells, tags
from book.tools.wheels import NAMES
from course.claims.rows import BOOK

URL, SITE = "https://github.com/someone/a-book", "https://someone.github.io/a-book/"
PAGES = ["book/02_attention", "book/solutions/02_attention"]


def git(*arguments, cwd):
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *arguments], cwd=cwd, check=True, capture_output=True,
                          text=True).stdout  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_below_its_title_one_line_installs_what_it_needs_and_links_lead_to_the_site(page):
    before = notebooks.read(ROOT / f"{page}.ipynb")
    after = alone(before, page, SITE)
    nbformat.validate(after)
    title, line, *rest = after.cells
    assert title.source.startswith("# ") and len(rest) == len(before.cells) - 1
    assert line.source == "%pip install " + " ".join(f"{SITE}wheels/{name}" for name in NAMES)
    assert not any(cell.get("outputs") for cell in rest if "answer" in notebooks.tags(cell))
    assert any(cell.get("outputs") for cell in rest)
    text = "\n".join(cell.source for cell in after.cells if cell.cell_type == "markdown")
    assert not [link for link in text.split("](")[1:] if not link.startswith(("http", "#"))]
    assert text.count(f"]({SITE}book/ledger.html#") >= (page == PAGES[0])


def test_links_are_those_of_the_site_and_stay_where_there_is_no_site():
    text = ("[one](01_one.ipynb) [(1.2)](01_one.ipynb#eq-a) [Fig. 1.1](#fig-b) [it](../index.md#c) "
            "![a drawing](_static/drawings/a.svg)")  # fmt: skip
    cells = [nbformat.v4.new_markdown_cell("# One"), nbformat.v4.new_markdown_cell(text)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert alone(notebook, "book/02_two", "https://a.b/").cells[2].source == (
        "[one](https://a.b/book/01_one.html) [(1.2)](https://a.b/book/01_one.html#equation-eq-a) "
        "[Fig. 1.1](#fig-b) [it](https://a.b/index.html#c) "
        "![a drawing](https://a.b/_static/drawings/a.svg)"
    )
    title, line, links = alone(notebook, "book/02_two", "").cells
    assert links.source == text and line.source.startswith("%pip install wheels/minivit-")


def test_the_branch_has_notebooks_that_work_alone_and_no_more_changes(tmp_path, monkeypatch):
    (tmp_path / ".github/workflows").mkdir(parents=True)
    (tmp_path / ".binder").mkdir()
    for file in (".github/workflows/a_file", ".binder/postBuild", "requirements.txt"):
        (tmp_path / file).touch()
    for page in PAGES:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / f"{page}.ipynb", tmp_path / f"{page}.ipynb")
    git("init", ".", cwd=tmp_path)
    git("add", ".", cwd=tmp_path)
    git("commit", "-m", "a book", cwd=tmp_path)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@localhost")
    monkeypatch.setattr("book.tools.address.ROOT", tmp_path)
    launch(URL)
    assert git("status", "--short", cwd=tmp_path) == ""
    assert git("branch", "--show-current", cwd=tmp_path) == "main\n"
    changed = git("diff", "--name-status", "main", "launch", cwd=tmp_path).splitlines()
    assert changed == ["D\t.github/workflows/a_file", *(f"M\t{page}.ipynb" for page in PAGES)]
    for page in PAGES:
        stored = nbformat.reads(git("show", f"launch:{page}.ipynb", cwd=tmp_path), as_version=4)
        assert stored == alone(notebooks.read(ROOT / f"{page}.ipynb"), page, SITE)
    commits = git("rev-parse", "launch", "environment", cwd=tmp_path)
    files = git("ls-tree", "-r", "--name-only", "environment", cwd=tmp_path).split()
    assert files == [".binder/postBuild", "requirements.txt"]
    git("commit", "--allow-empty", "-m", "the book changes", cwd=tmp_path)
    launch(URL)
    again = git("rev-parse", "launch", "environment", cwd=tmp_path)
    assert again.split()[1] == commits.split()[1] and again != commits, "Binder keeps its image"


def test_the_packages_have_checks_verdicts_results_and_every_model_and_no_solution(packages):
    code = """
import minivit, course.claims, course.results
from course import check
from course.claims.rows import BOOK, load
assert str(BOOK).endswith("packages/course/book"), BOOK
print(len(check.__all__), len(load().claims), len(list(BOOK.glob("results/*.json"))))
for name in minivit.models():
    if name.weights == "shipped":
        minivit.load(name.name)
import studies.inversion_and_training
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=packages, text=True,
                         capture_output=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    results = len(list(ROOT.glob("book/results/*.json")))
    assert ran.stdout.split() == ["152", "253", str(results)]
    files = [path.relative_to(packages) for path in packages.glob("**/*")]
    assert not [path for path in files if "solutions" in path.parts or "grading" in path.parts]


# As in Pyodide: no thread starts, no process forks, nothing is compiled, and no torchvision is there.
BLOCK = """\
import os, sys, threading

def refused(*_, **__):
    raise RuntimeError("there is none of this in a page")

threading.Thread.start = os.fork = refused
sys.modules["torchvision"] = None
os.environ["MPLBACKEND"] = "agg"
import torch
torch.compile = torch.set_num_threads = refused
"""


def run(code):
    command = [sys.executable, "-c", BLOCK + code]
    around = os.environ | {"PYTHONPATH": str(BOOK.parent)}
    return subprocess.run(command, capture_output=True, text=True, cwd=BOOK, env=around)


@pytest.mark.full
def test_packages_a_model_and_a_chapter_run_without_any_of_it():
    """The chapter runs up to the cell that compares with torchvision, without its sliders."""
    for code in ("threading.Thread(target=print).start()", "import torchvision"):
        assert run(code).returncode != 0, code
    code = (
        "import minivit\n"
        "from course import check\n"
        "from vitlab import figures, inversion, training\n"
        "model = minivit.load('digits_vit')\n"
        "with minivit.record(model, 'blocks.*.attention.weights') as seen, torch.no_grad():\n"
        "    model(torch.zeros(1, 1, 8, 8))\n"
        "print(len(seen))"
    )
    result = run(code)
    assert result.stdout.strip() == "4", result.stderr
    chapter = [
        cell.source
        for cell in cells(BOOK / "01_images_as_sequences.ipynb")
        if cell.cell_type == "code" and "nbval-ignore-output" not in tags(cell)
    ]
    end = next(i for i, text in enumerate(chapter) if "torchvision" in text)
    result = run("\n".join(chapter[:end]))
    assert end >= 8 and result.returncode == 0, result.stderr
