"""The first cell where a notebook arrives alone, as in Colab: played with a local repository."""

import json
import os
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from book.tools.address import ROOT, filled, launch
from book.tools.first_cell import first_cell

URL = "https://github.com/someone/a-book"
NAMES = ["book/02_attention.ipynb", "book/solutions/02_attention.ipynb"]


def git(*arguments, cwd):
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *arguments], cwd=cwd, check=True, capture_output=True,
                          text=True).stdout  # fmt: skip


def notebook(name):
    """A notebook's file that has the project's first cell alone, without an address."""
    cell = nbformat.v4.new_code_cell(first_cell(ROOT / name))
    return nbformat.writes(nbformat.v4.new_notebook(cells=[cell])).encode()


@pytest.fixture
def origin(tmp_path, monkeypatch):
    """A small copy of the repository, to which the address leads, with its branch ``launch``."""
    origin = tmp_path / "origin"
    without = shutil.ignore_patterns("__pycache__", "checkpoints")
    shutil.copytree(ROOT / "minivit", origin / "minivit", ignore=without)
    for folder in ("course/claims", "book/solutions", ".github/workflows"):
        (origin / folder).mkdir(parents=True)
        (origin / folder / "a_file").touch()
    shutil.copy(ROOT / "course/__init__.py", origin / "course")
    for name in NAMES:
        (origin / name).write_bytes(notebook(name))
    git("init", ".", cwd=origin)
    git("add", ".", cwd=origin)
    git("commit", "-m", "a book", cwd=origin)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@localhost")
    monkeypatch.setattr("book.tools.address.ROOT", origin)
    launch(URL)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{origin.as_uri()}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", URL)
    return origin


def run(cell, folder, environment):
    shown = "import json; print(json.dumps([minivit.__file__, course.__file__, os.getcwd()]))"
    code = f"{cell}\nimport minivit, course, os\n{shown}"
    result = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment,
                            capture_output=True, text=True)  # fmt: skip
    assert result.returncode == 0, result.stderr
    *said, last = result.stdout.splitlines()
    return json.loads(last), said


def test_the_branch_has_the_address_in_its_notebooks_and_nothing_else_is_touched(origin):
    assert git("status", "--short", cwd=origin) == ""
    assert git("branch", "--show-current", cwd=origin) == "main\n"
    changed = git("diff", "--name-status", "main", "launch", cwd=origin).splitlines()
    assert changed == ["D\t.github/workflows/a_file", *(f"M\t{name}" for name in NAMES)]
    for name in NAMES:
        before, after = (git("show", f"{ref}:{name}", cwd=origin) for ref in ("main", "launch"))
        assert URL not in before
        placed = before.replace('url = \\"\\"', f'url = \\"{URL}\\"')
        assert after == placed.replace("](_static/", f"]({URL}/raw/launch/book/_static/")


def test_alone_it_fetches_the_book_and_enters_the_notebooks_folder(tmp_path, origin):
    content = tmp_path / "content"
    content.mkdir()
    for name in NAMES:  # the second time the clone is there
        text = git("show", f"launch:{name}", cwd=origin)
        cell = nbformat.reads(text, as_version=4).cells[0].source
        (minivit, course, cwd), said = run(cell, content, os.environ)
        assert minivit == str(content / "a-book/minivit/__init__.py")
        assert course == str(content / "a-book/course/__init__.py")
        assert cwd == str((content / "a-book" / name).parent)
        assert said == []


def test_in_the_repository_it_only_makes_the_packages_importable():
    nowhere = os.environ | {"PATH": ""}  # so that neither git nor pip could be called
    for folder in ("book", "book/solutions", "."):
        (minivit, _, cwd), said = run(first_cell(ROOT / NAMES[0]), ROOT / folder, nowhere)
        assert minivit == str(ROOT / "minivit/__init__.py")
        assert (cwd, said) == (str((ROOT / folder).resolve()), [])


@pytest.mark.parametrize("url, sentence", [
    ("", "This notebook needs the book around it: open it in a clone."),
    (URL, f"The book must be fetched, and `git clone --quiet --depth 1 --branch launch {URL}` failed."),
], ids=["no address", "no network"])  # fmt: skip
def test_where_it_cannot_go_on_it_says_one_sentence(tmp_path, monkeypatch, url, sentence):
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")  # git refuses https
    alone = nbformat.reads(filled(notebook(NAMES[0]), url).decode(), as_version=4)
    resources = {"metadata": {"path": tmp_path}}
    with pytest.raises(CellExecutionError):
        NotebookClient(alone, kernel_name="python3", resources=resources).execute()
    (error,) = alone.cells[0].outputs
    assert error.traceback == [sentence]
