"""The figures of the notebooks: their copies on other pages, and their forms for phones."""

import base64
import hashlib
import io
import re
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

import nbformat
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book._ext.chapters import names, notebook
from book._ext.dark import dark, encoded, encoded_layer, flat, is_chart
from book._ext.edition import address
from book._ext.pages import html, when_built
from book.tools import portable
from book.tools.notebooks import cells, display_data, figure_name, of_the_book, outputs, read
from course.claims.ledger import MIME, chapters

WIDEST = 640  # pixels of a copy on another page
THUMBNAIL = 320  # pixels of a copy beside a claim
SMALL = 240  # pixels of a copy to choose by
STORED = "_static/stored"
FRAME = re.compile(r'<img alt="([^"]*)" src="data:image/webp;base64,([^"]+)"(?! hidden)')
COPIES: dict[str, bytes] = {}  # files that the pages of this build show; one without data goes


class Copy(NamedTuple):
    """A figure of a chapter, scaled down."""

    file: str
    alt: str

    def tag(self, folder: str, attributes: str = "") -> str:
        shown = f'src="{folder}/{self.file}" alt="{escape(self.alt)}" loading="lazy"'
        return f"<img {attributes}{shown}>"


@cache
def scaled(name: str, alt: str, file: bytes, widest: int, narrow: bytes = b"") -> Copy:
    """An image and its form for phones, on white ground, no wider than so many pixels.

    What a dark page lays over it is made of the whole image: a small one's edges are blended.
    """
    forms = {"": file} | ({"-narrow": narrow} if narrow else {})
    papers = {kind: flat(Image.open(io.BytesIO(data))) for kind, data in forms.items()}
    chart = is_chart(papers[""])
    for kind, paper in papers.items():
        layer = None if chart else dark(paper)
        for one in filter(None, (paper, layer)):
            one.thumbnail((widest, 2 * widest), Image.Resampling.LANCZOS)
        stem = f"{name}-{widest}{kind}"
        COPIES[f"{stem}.webp"] = encoded(paper, quality=70, method=4)
        COPIES[f"{stem}-dark.webp"] = encoded_layer(layer) if layer else b""
    return Copy(f"{name}-{widest}.webp", alt)


def picture(cell: nbformat.NotebookNode, data: dict) -> tuple[str, bytes] | None:
    """What an output shows, in words and as a file; of a slider, the frame it starts with."""
    if "image/png" in data:
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        return " ".join(alt.split()), base64.b64decode(data["image/png"])
    frame = FRAME.search(data.get("text/html", ""))
    return (unescape(frame[1]), base64.b64decode(frame[2])) if frame else None


def small(chapter: str, cell: nbformat.NotebookNode, data: dict) -> Copy:
    """A figure to choose by, from the cell of a chapter and its output."""
    return scaled(f"{chapter[:2]}-{cell.id}", *picture(cell, data), SMALL)


@cache
def thumbnails() -> dict[str, Copy]:
    """By claim id, the image that its verdict's cell ``shows``, or its section's last before it."""
    copies: dict[str, Copy] = {}
    for path in chapters():
        latest, known = "", dict[str, tuple[str, str, bytes]]()  # by the drawing cell
        for cell in cells(path):
            latest *= cell.cell_type == "code" or not re.search("(?m)^#", cell.source)  # a heading
            for data in display_data(cell):
                if image := picture(cell, data):
                    latest = cell.id
                    known[latest] = (f"{path.stem[:2]}-{latest}", *image)
                elif MIME in data and (shown := cell.metadata.get("shows", latest)) in known:
                    copies[data[MIME]["id"]] = scaled(*known[shown], THUMBNAIL)
    return copies


def with_figures() -> list[str]:
    """Names of the notebooks that this book has and that have figures, in reading order."""
    return [*names().values(), "fine_tuning", "recipes"]


@cache
def figures() -> tuple[tuple[str, nbformat.NotebookNode, dict], ...]:
    """Every named figure in reading order: its notebook, its cell, its output."""
    return tuple(
        (chapter, cell, data)
        for chapter in with_figures()
        for cell in portable.cells(notebook(chapter))
        for data in display_data(cell)
        if "image/png" in data and figure_name(cell)
    )


class StoredImage(SphinxDirective):
    """A copy of a chapter's figure, or of its form for phones, that leads to it."""

    required_arguments = 2

    def run(self):
        chapter, name = self.arguments
        self.env.note_dependency(str(notebook(chapter)))
        cell = find(chapter, name)
        alt, file = next(filter(None, (picture(cell, data) for data in display_data(cell))))
        up = "../" * self.env.docname.count("/")
        page = address(f"book/{chapter}", f"{up}book/{chapter}.html")
        copy = f"{chapter[:2]}-{name}"
        narrow = next((o.metadata["narrow"] for o in cell.outputs if "narrow" in o.metadata), "")
        image = scaled(copy, alt, file, WIDEST, base64.b64decode(narrow)).tag(up + STORED)
        return [html(f'<a href="{page}#{figure_name(cell)}">{image}</a>' if page else image)]


def find(chapter: str, name: str) -> nbformat.NotebookNode:
    """A chapter's cell with this id."""
    (cell,) = (cell for cell in cells(notebook(chapter)) if cell.get("id") == name)
    return cell


def write_copies(app: Sphinx) -> None:
    folder = Path(app.outdir) / STORED
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in COPIES.items():
        file = folder / name
        file.write_bytes(data) if data else file.unlink(missing_ok=True)


def stored(data: dict) -> str:
    """The name of the file that a page's build writes of a cell's image."""
    return f"{hashlib.sha256(base64.b64decode(data['image/png'])).hexdigest()}.png"


def form(image: Path, kind: str) -> Path:
    """Where an image's form for phones lies, "narrow", or what a dark page lays over it, "dark"."""
    return image.with_name(f"{image.stem}-{kind}.webp")


def write_narrow_forms(app: Sphinx) -> None:
    """Writes these forms, stored in notebooks, beside the images, whose names are their hashes."""
    for path in of_the_book():
        for output in outputs(read(path)):
            if narrow := output.get("metadata", {}).get("narrow"):
                wide = Path(app.outdir) / "_images" / stored(output.data)
                if wide.exists():  # not of a chapter that this edition leaves out
                    form(wide, "narrow").write_bytes(base64.b64decode(narrow))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("stored-image", StoredImage)
    when_built(app, write_copies)
    when_built(app, write_narrow_forms)  # before light_pages, which puts them into the pages
    return {"parallel_read_safe": False}
