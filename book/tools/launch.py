"""Notebooks that leave the book, and the branches that Colab and Binder open.

Below its title, one line installs what such a notebook needs, and links lead to the site. What a
prediction asks for is not there until the cell has run: Colab folds no outputs.

``python -m book.tools.launch`` makes the branches. ``launch``, for Colab, has HEAD's files with
such notebooks, but no workflows, which a workflow's token may not push. ``environment``, for
Binder, has what its image is built from. It is the same commit until a package changes, so that
Binder builds no other for each change of the book.
"""

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urljoin

import nbformat
from nbformat import NotebookNode, from_dict, v4

from book.tools.address import git, repository, site
from book.tools.notebooks import tags
from book.tools.wheels import NAMES

BRANCH, ENVIRONMENT = "launch", "environment"
LINK = re.compile(r"(?<=\]\()((?:\.\./)*[\w./]+)\.(?:ipynb|md)(#[\w-]+)?(?=\))")
DRAWING = re.compile(r"(?<=\]\()(?:\.\./)?_static/")


def alone(notebook: NotebookNode, page: str, site: str) -> NotebookNode:
    """A notebook of the book, named as in ``_toc.yml``, as it works without the rest.

    The site's address ends with a slash; without one, links stay as they are, and the packages
    come from the folder ``wheels`` beside the notebook.
    """

    def to_site(link: re.Match) -> str:
        anchor = (link[2] or "").replace("#eq-", "#equation-eq-")
        return f"{site}{urljoin(page, link[1])}.html{anchor}"

    cells = [from_dict(cell) for cell in notebook.cells]
    for cell in cells:
        if cell.cell_type == "code" and "answer" in tags(cell):
            cell.outputs, cell.execution_count = [], None
        elif cell.cell_type == "markdown" and site:
            cell.source = LINK.sub(to_site, cell.source)
            cell.source = DRAWING.sub(f"{site}_static/", cell.source)
    wheels = " ".join(f"{site}wheels/{name}" for name in NAMES)
    line = v4.new_code_cell(f"%pip install {wheels}", id="install")
    return from_dict(notebook | {"cells": [cells[0], line, *cells[1:]]})


def launch(url: str) -> None:
    """Makes the branch, in a repository whose address this is."""
    head = git("rev-parse", "HEAD").decode().strip()
    with tempfile.TemporaryDirectory() as folder:
        beside = os.environ | {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git("read-tree", head, environment=beside)
        git("rm", "--cached", "--quiet", "-r", "--ignore-unmatch", ".github", environment=beside)
        for path in git("ls-tree", "-r", "--name-only", head, "book").decode().splitlines():
            if path.endswith(".ipynb"):
                notebook = nbformat.reads(git("show", f"{head}:{path}").decode(), as_version=4)
                text = nbformat.writes(alone(notebook, path.removesuffix(".ipynb"), site(url)))
                blob = git("hash-object", "-w", "--stdin", given=text.encode()).decode().strip()
                git("update-index", "--cacheinfo", f"100644,{blob},{path}", environment=beside)
        tree = git("write-tree", environment=beside).decode().strip()
    point(BRANCH, tree, f"The files of {head}, with notebooks that work alone")
    listed = git("ls-tree", head, ".binder", "requirements.txt")
    tree = git("mktree", given=listed).decode().strip()
    constant = {f"GIT_{role}_DATE": "2026-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    point(ENVIRONMENT, tree, "What Binder installs", os.environ | constant)


def point(branch: str, tree: str, message: str, around: Mapping[str, str] = os.environ) -> None:
    """Lets a branch point to a commit of a tree, without a parent: no history moves with a push."""
    commit = git("commit-tree", tree, "-m", message, environment=around).decode().strip()
    git("update-ref", f"refs/heads/{branch}", commit)


if __name__ == "__main__":
    address = repository()
    if not address:
        sys.exit("No address: set MINIVIT_REPOSITORY, or add a remote `origin` that is on GitHub.")
    launch(address)
    print(f"The branches are made: git push --force origin {BRANCH} {ENVIRONMENT}")
