"""Gives Sphinx the notebooks with roles, labels and captions in place of plain Markdown."""

import nbformat
from sphinx.application import Sphinx

from book.tools.portable import for_sphinx


def read(app: Sphinx, page: str, source: list[str]) -> None:
    if app.env.doc2path(page).endswith(".ipynb"):
        source[0] = nbformat.writes(for_sphinx(nbformat.reads(source[0], as_version=4)))


def setup(app: Sphinx) -> None:
    app.connect("source-read", read)
