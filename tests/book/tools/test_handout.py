"""What is handed out: it stands alone, and each notebook runs through with nothing written in it."""

import re

import pytest
from nbclient import NotebookClient

from book.tools.address import ROOT
from book.tools.notebooks import cells, read, tags
from book.tools.wheels import NAMES

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
