"""Notebooks in plain Markdown, which JupyterLab, Colab and GitHub show as the site does.

    python -m book.tools.portable [NOTEBOOK ...]     default: all of them

An author may write MyST's roles (``{eq}`eq-norm```); this command turns them into links with the
numbers that the site gives, writes a caption into a cell below its figure, folds code, and what
answers a prediction (tag ``answer``). When Sphinx reads a notebook, ``book/_ext/portable.py`` turns
all of it back, so that numbers, citations and captions stay Sphinx's.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode, from_dict, v4

from book.tools import notebooks
from book.tools.notebooks import figure_name, tags
from book.tools.roles import places, plain, roles

TITLE = re.compile(r"\A# @title [^\n]*\n")  # Colab's, above the code that it folds
CAPTION = re.compile(r'\A<a id="(fig-[\w-]+)"></a>\*\*Fig\. [\d.]+\.\*\* (.*)\Z', re.DOTALL)
ANSWER = "<details><summary>{}</summary>\n\n{}\n\n</details>"
ANSWERED = re.compile(ANSWER.format(r"(?:What happened|What Fig. [\d.]+ shows)", "(?s:(.*))"))


def folded_title(cell: NotebookNode) -> str:
    """What stands above folded code in place of it."""
    if figure_name(cell):
        return f"Code of Fig. {places()[figure_name(cell)].number}"
    if "solution" in tags(cell):
        return "A solution; it does not replace yours"
    kinds = {"import": "Imports", "from": "Imports", "verdict": "Code of the verdict"}
    code = re.search(r"def |\A(?:from|import)\b(?s:.*)\bprint\(", cell.source)
    return "Code" if code else kinds.get(re.split(r"\W", cell.source)[0], "Code")


def portable(notebook: NotebookNode, page: Path) -> NotebookNode:
    """A notebook as it is stored, from one as Sphinx reads it."""

    def stored() -> Iterator[NotebookNode]:
        for cell in notebook.cells:
            cell = from_dict(cell)
            if cell.cell_type == "markdown":
                cell.source = plain(cell.source, page)
                if "answer" in tags(cell):
                    cell.source = ANSWER.format("What happened", cell.source)
            if "answer" in tags(cell) and cell.cell_type == "code":
                cell.metadata.setdefault("jupyter", {})["outputs_hidden"] = True
            if "hide-input" in tags(cell):
                cell.metadata.setdefault("jupyter", {})["source_hidden"] = True
                cell.metadata.cellView = "form"
                title = folded_title(cell)
                if "answer" in tags(cell):  # nothing is seen of it until it runs
                    what = cell.metadata.get("summary", title)
                    title = re.sub("^(Show|Code of|Code) ?", "Run me: ", what).removesuffix(": ")
                cell.source = f"# @title {title}\n{cell.source}"
            yield cell
            if name := figure_name(cell):
                caption = plain(cell.metadata.mystnb.figure.pop("caption"), page)
                number = places()[name].number
                caption = f'<a id="{name}"></a>**Fig. {number}.** {caption}'
                if "answer" in tags(cell):
                    caption = ANSWER.format(f"What Fig. {number} shows", caption)
                yield v4.new_markdown_cell(caption, id=name, metadata={"tags": ["caption"]})

    return from_dict(notebook | {"cells": list(stored())})


def for_sphinx(notebook: NotebookNode) -> NotebookNode:
    """A notebook with roles, labels and captions where MyST-NB looks for them."""
    cells: list[NotebookNode] = []
    for cell in notebook.cells:
        cell = from_dict(cell)
        if cell.cell_type == "code":
            cell.metadata.pop("jupyter", None)
            cell.metadata.pop("cellView", None)
            cell.source = TITLE.sub("", cell.source)
        elif answer := ANSWERED.fullmatch(cell.source):
            cell.source = answer[1]
        if "caption" in tags(cell) and (match := CAPTION.match(cell.source)):
            if not cells or figure_name(cells[-1]) != match[1]:
                raise ValueError(f"expected the cell of {match[1]} above its caption")
            cells[-1].metadata.mystnb.figure.caption = roles(match[2])
            continue
        if cell.cell_type == "markdown":
            cell.source = roles(cell.source)
        cells.append(cell)
    return from_dict(notebook | {"cells": cells})


def cells(page: Path) -> list[NotebookNode]:
    """A notebook's cells as Sphinx reads them."""
    return for_sphinx(notebooks.read(page)).cells


def prose(page: Path) -> str:
    """What is written on a page: its Markdown, with roles and without code."""
    if page.suffix != ".ipynb":
        return page.read_text(encoding="utf-8")
    return "\n\n".join(cell.source for cell in cells(page) if cell.cell_type == "markdown")


if __name__ == "__main__":
    for path in notebooks.named_on_the_command_line(__doc__ or "", notebooks.of_the_book()):
        notebooks.write(path, portable(for_sphinx(notebooks.read(path)), path))
