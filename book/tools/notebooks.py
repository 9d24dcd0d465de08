"""Notebooks as files: their cells, with their tags and figures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def cells(path: Path) -> list[NotebookNode]:
    """The cells of a notebook's file."""
    return read(path).cells


def write(path: Path, notebook: NotebookNode) -> None:
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def figure_name(cell: NotebookNode) -> str:
    """The name by which the book points to a cell's figure, or nothing."""
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "")


def shown(cell: NotebookNode) -> Iterator[dict[str, Any]]:
    """The data of a cell's outputs, by their MIME types."""
    return (output.get("data", {}) for output in cell.get("outputs", []))


def prose(path: Path) -> str:
    """What is written on a page: its Markdown, without code."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    return "\n\n".join(cell.source for cell in cells(path) if cell.cell_type == "markdown")
