"""Gives phones the figures that stand one below the other, which ``book/tools/narrow.py`` drew."""

import base64
import hashlib
from pathlib import Path

import nbformat
from sphinx.application import Sphinx

from course.claims.rows import BOOK


def beside(image: Path) -> Path:
    """Where the narrow form of a page's image lies, if it has one."""
    return image.with_name(f"{image.stem}-narrow.webp")


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes them beside the images of the site, whose names are hashes of what they hold."""
    if error is not None or app.builder.format != "html":
        return
    for path in BOOK.rglob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if "narrow" in output.get("metadata", {}):
                    png = base64.b64decode(output.data["image/png"])
                    name = f"{hashlib.sha256(png).hexdigest()}.png"
                    wide = Path(app.outdir) / "_images" / name
                    if (
                        wide.exists()
                    ):  # not of a chapter that this edition leaves out
                        beside(wide).write_bytes(
                            base64.b64decode(output.metadata["narrow"])
                        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect(
        "build-finished", write
    )  # before light_pages, which puts them into the pages
    return {"parallel_read_safe": True, "parallel_write_safe": True}
