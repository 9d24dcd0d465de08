"""Small copies of the figures that decide: of each verdict, the last image at or before its cell."""

import base64
import io
import re
from dataclasses import dataclass
from functools import cache
from html import unescape

import nbformat
from PIL import Image

from course.claims.ledger import MIME, chapters

WIDEST = 320  # pixels
FRAME = re.compile(
    r'<img alt="([^"]*)" src="data:image/webp;base64,([^"]+)"(?! hidden)'
)


@dataclass(frozen=True)
class Thumbnail:
    """An image of a chapter, scaled down."""

    file: str
    alt: str
    width: int
    height: int
    webp: bytes


@cache
def thumbnails() -> dict[str, Thumbnail]:
    """By claim id, the figure that decided it, where its chapter has drawn one by then."""
    found: dict[str, Thumbnail] = {}
    for path in chapters():
        latest, small = None, None
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                picture = image(cell, data)
                if picture:
                    latest, small = (f"{path.stem[:2]}-{cell.id}", *picture), None
                elif MIME in data and latest:
                    small = small or scaled(*latest)
                    found[data[MIME]["id"]] = small
    return found


def image(cell: nbformat.NotebookNode, data: dict) -> tuple[str, bytes] | None:
    """What an output shows, in words and as a file; of a slider, the frame it starts with."""
    if "image/png" in data:
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        return " ".join(alt.split()), base64.b64decode(data["image/png"])
    frame = FRAME.search(data.get("text/html", ""))
    return (unescape(frame[1]), base64.b64decode(frame[2])) if frame else None


def scaled(name: str, alt: str, file: bytes) -> Thumbnail:
    """An image as a thumbnail."""
    with Image.open(io.BytesIO(file)) as opened:
        picture = opened.convert("RGBA")
    paper = Image.new("RGB", picture.size, "white")
    paper.paste(picture, mask=picture)
    paper.thumbnail((WIDEST, 2 * WIDEST), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    paper.save(out, "WEBP", quality=70, method=4)
    return Thumbnail(f"{name}.webp", alt, *paper.size, out.getvalue())
