"""What slides take from the book and do not repeat: figures, sliders, verdicts, the script."""

import io
import re
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from PIL import Image

from book._ext.claims import counts, verdicts
from book._ext.dark import encoded
from book._ext.figures import figures as book_figures
from book._ext.figures import find, picture
from book._ext.pages import from_template
from book.tools import script
from book.tools.notebooks import cells, display_data, figure_name
from course.claims import export
from course.claims.card import css_class
from course.claims.cite import Build
from course.claims.ledger import chapters

FIGURE = re.compile(r"!\[([^]]*)\]\(figure:([\w-]+)(?:#([\d,]+))?\)")  # a part of it: see cut
ROLE = re.compile(r"\{(\w+)\}`([^`]+)`")  # {measured}`R65`, as in the book
STILL = re.compile(
    r'<div class="live-part" data-part="(\w+)">.*?!\[([^]]*)\]\(_static/([^)]*)\)', re.DOTALL
)


@cache
def figures() -> dict[str, tuple[str, bytes]]:
    """Alternative text and PNG of every named figure of the chapters."""
    return {figure_name(cell): picture(cell, data) for _, cell, data in book_figures()}


def cut(file: bytes, part: str) -> bytes:
    """A part of a figure: left, top, width and height in percent, for instance ``0,0,100,50``."""
    left, top, width, height = map(int, part.split(","))
    with Image.open(io.BytesIO(file)) as whole:
        box = (left, top, left + width, top + height)
        edges = [round(n * size / 100) for n, size in zip(box, whole.size * 2, strict=True)]
        return encoded(whole.crop(tuple(edges)), "PNG")


@cache
def claims() -> dict[str, dict[str, Any]]:
    """What the ledger knows of each claim."""
    return {row["id"]: row for row in export.ledger(verdicts(), Build("", ""))["claims"]}


@cache
def stills() -> dict[str, tuple[str, str]]:
    """Text and file of the still picture of every drawing of a chapter that answers."""
    sources = (cell.source for path in chapters() for cell in cells(path))
    return {name: (alt, file) for text in sources for name, alt, file in STILL.findall(text)}


def count(name: str) -> str:
    return f"{counts(verdicts())[name]:,}"


def measured(name: str) -> str:
    """A claim's figure, with its interval where it has one."""
    return ", ".join(filter(None, (claims()[name]["figure"], claims()[name]["interval"])))


def word(name: str) -> str:
    return claims()[name]["word"]


def verdict(name: str) -> str:
    row = claims()[name]
    word, _, sentence = row["verdict"].partition(": ")
    what = re.split(r"; beside|\. |: the ", row["measure"].rstrip("."))[0]
    values = {"claim": row, "word": word, "sentence": sentence, "what": what}
    functions = {"measured": measured(name), "css_class": css_class}
    return from_template("slide_verdict.html", **values, **functions)


def slider(place: str) -> str:
    """The slider of a chapter's cell, as stored: CHAPTER CELL."""
    data = display_data(find(*place.split()))
    (stored,) = (output["text/html"] for output in data if "text/html" in output)
    return stored.replace("\n", " ").replace("<figure ", "<figure data-prevent-swipe ")


def live(model: str) -> str:
    """A model that runs in the slide: MODEL, or MODEL SHOW for one of its panels."""
    name, _, panel = model.partition(" ")
    show = f' data-show="{panel}"' if panel else ""
    return f'<div class="live" data-prevent-swipe data-model="{name}"{show}></div>'


def part(name: str) -> str:
    """A drawing of a chapter that answers, and the still picture until it does."""
    alt, file = stills()[name]
    return (
        f'<div class="live-part" data-prevent-swipe data-part="{name}">'
        f'<img src="{file}" alt="{escape(alt)}"></div>'
    )


TAKEN = (count, live, measured, part, slider, verdict, word)
ROLES: dict[str, Callable[[str], str]] = {role.__name__: role for role in TAKEN}


def filled(text: str, folder: Path | None = None) -> str:
    """A deck's Markdown with everything in its place; figures are written to the folder."""

    def image(match: re.Match[str]) -> str:
        alt, file = figures()[match[2]]
        name = "-".join([match[2], *(match[3] or "").split(",")]).rstrip("-") + ".png"
        if folder:
            (folder / name).write_bytes(cut(file, match[3]) if match[3] else file)
        return f"![{match[1] or alt}](figures/{name})"

    text = ROLE.sub(lambda match: ROLES[match[1]](match[2]), script.spoken(text))
    return FIGURE.sub(image, text)
