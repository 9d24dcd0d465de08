"""Notebooks that leave the book: opened in Colab, downloaded from a page, or handed out.

Below its title, one line installs what such a notebook needs, and links lead to the site. What a
prediction asks for is not there until the cell has run: Colab folds no outputs.
"""

import posixpath
import re

from nbformat import NotebookNode, from_dict, v4

from book.tools.notebooks import tags
from book.tools.wheels import NAMES

LINK = re.compile(r"(?<=\]\()((?:\.\./)*[\w./]+)\.(?:ipynb|md)(#[\w-]+)?(?=\))")
DRAWING = re.compile(r"(?<=\]\()(?:\.\./)?_static/")


def install(wheels: str) -> str:
    """The line that installs the book's packages from a folder, or an address."""
    return "%pip install " + " ".join(f"{wheels}/{name}" for name in NAMES)


def alone(notebook: NotebookNode, page: str, site: str, wheels: str = "") -> NotebookNode:
    """A notebook of the book, named as in ``_toc.yml``, as it works without the rest.

    The site's address ends with a slash; without one, links stay as they are.
    """

    def to_site(link: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[1]))
        anchor = (link[2] or "").replace("#eq-", "#equation-eq-")
        return f"{site}{target}.html{anchor}"

    cells = [from_dict(cell) for cell in notebook.cells]
    for cell in cells:
        if cell.cell_type == "code" and "answer" in tags(cell):
            cell.outputs, cell.execution_count = [], None
    for cell in cells if site else ():
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(to_site, cell.source)
            cell.source = DRAWING.sub(f"{site}_static/", cell.source)
    line = v4.new_code_cell(install(wheels or f"{site}wheels"), id="install")
    return from_dict(notebook | {"cells": [cells[0], line, *cells[1:]]})
