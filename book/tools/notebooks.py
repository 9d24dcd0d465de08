"""Notebooks as files: their cells, with their tags, outputs and figures; and their kernels."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.output_widget import OutputWidget
from nbformat import NotebookNode

from book.tools.address import ROOT

# What a widget shows is sent to the kernel on the socket on which a cell's answer is awaited; the
# answer may then be missed until the time is up (jupyter/nbclient#312). Nothing stored needs it.
OutputWidget.sync_state = lambda self: None  # type: ignore[method-assign]


def of_the_book() -> list[Path]:
    """The chapters and solutions, and what else the site shows as a notebook."""
    return sorted([*ROOT.glob("book/*.ipynb"), *ROOT.glob("book/solutions/*.ipynb")])


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def write(path: Path, notebook: NotebookNode) -> None:
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def cells(path: Path) -> list[NotebookNode]:
    return read(path).cells


def outputs(notebook: NotebookNode) -> Iterator[NotebookNode]:
    return (output for cell in notebook.cells for output in cell.get("outputs", []))


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def figure_name(cell: NotebookNode) -> str:
    """The name by which the book points to a cell's figure, or nothing."""
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "")


def display_data(cell: NotebookNode) -> Iterator[dict[str, Any]]:
    """What a cell's outputs show, by MIME type."""
    return (output.get("data", {}) for output in cell.get("outputs", []))


def named_on_the_command_line(doc: str, default: list[Path]) -> list[Path]:
    """The notebooks that a command gets as arguments, or else the default."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("notebook", nargs="*", type=Path, default=default)
    return [path.resolve() for path in parser.parse_args().notebook]


@contextmanager
def kernels(startup: str) -> Iterator[None]:
    """Kernels of one thread with the book's packages and no ``my_vit.py``; a line runs first."""
    with TemporaryDirectory() as folder:
        os.environ |= {"IPYTHONDIR": folder, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        file = Path(folder) / "profile_default/startup/first.py"
        file.parent.mkdir(parents=True)
        own = f"import os, tempfile; os.environ['MY_VIT'] = tempfile.mkdtemp(dir={folder!r})"
        file.write_text(f"{own}\n{startup}", encoding="utf-8")
        yield


def run(notebook: NotebookNode, folder: Path) -> None:
    """Executes a notebook in a fresh kernel, as if it lay in the folder."""
    NotebookClient(
        notebook,
        timeout=120,  # seconds, for one cell
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # a busy machine delivers one print in two parts
        resources={"metadata": {"path": folder}},
    ).execute()
