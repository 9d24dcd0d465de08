"""Shows on other pages what the chapters have stored, so that nothing is drawn or written twice.

``{stored-image} CHAPTER CELL`` puts in a copy of a cell's figure, with a link to it;
``{measured}`R65``` a claim's figure.
"""

from functools import cache
from html import escape
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from book._ext.claims import found, html, note_dependencies, refused
from book._ext.edition import address
from book._ext.thumbnails import image, scaled
from course.claims.rows import BOOK

WIDEST = 640  # pixels of a copy
FOLDER = "_static/stored"
COPIES: dict[str, bytes] = {}  # those that the pages of this build show


class StoredImage(SphinxDirective):
    """A copy of a chapter's figure, 640 pixels wide or less, that leads to it."""

    required_arguments = 2

    def run(self):
        path, cell = find(*self.arguments)
        self.env.note_dependency(str(path))
        copy = small(*self.arguments)
        COPIES[copy.file] = copy.webp
        anchor = cell.metadata["mystnb"]["figure"]["name"]
        picture = (
            f'<img src="{FOLDER}/{copy.file}" alt="{escape(copy.alt)}" '
            f'width="{copy.width}" height="{copy.height}" loading="lazy">'
        )
        page = address(f"book/{path.stem}", f"book/{path.stem}.html")
        return [
            html(f'<a href="{page}#{anchor}">{picture}</a>' if page else picture)
        ]


class MeasuredRole(SphinxRole):
    """The figure of a claim, as its chapter has it."""

    def run(self):
        note_dependencies(self.env)
        if self.text not in found():
            return refused(self, f"no verdict is stored for {self.text!r}")
        return [nodes.Text(found()[self.text].figure)], []


def find(chapter: str, name: str) -> tuple[Path, nbformat.NotebookNode]:
    """A chapter's notebook, and its cell with this id."""
    path = BOOK / f"{chapter}.ipynb"
    (cell,) = (
        c for c in nbformat.read(path, as_version=4).cells if c.get("id") == name
    )
    return path, cell


@cache
def small(chapter: str, name: str):
    """A copy of the figure of a chapter's cell."""
    _, cell = find(chapter, name)
    pictures = (image(cell, out.get("data", {})) for out in cell.outputs)
    alt, file = next(picture for picture in pictures if picture)
    return scaled(f"{chapter[:2]}-{name}", alt, file, WIDEST)


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the copies that this build shows; Sphinx calls this at the end."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, webp in COPIES.items():
        (folder / name).write_bytes(webp)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("stored-image", StoredImage)
    app.add_role("measured", MeasuredRole())
    app.connect("build-finished", write)
    return {"parallel_read_safe": False}
