"""What slides take from the book and do not repeat: figures, sliders, verdicts, the script."""

import io
import re
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, TypeVar

import nbformat
from PIL import Image

from book._ext.claims import found
from book._ext.ledger_counts import counts
from book._ext.stored import find
from book._ext.thumbnails import image
from book.tools import script
from course.claims import export
from course.claims.card import css_class
from course.claims.cite import Build
from course.claims.ledger import chapters

FIGURE = re.compile(r"!\[([^]]*)\]\(figure:([\w-]+)(?:#([\d,]+))?\)")  # a part of it: see cut
ROLE = re.compile(r"\{(\w+)\}`([^`]+)`")  # {measured}`R65`, as in the book
T = TypeVar("T")


@cache
def figures() -> dict[str, tuple[str, bytes]]:
    """Alternative text and PNG of every named figure of the chapters."""
    drawn = {}
    for path in chapters():
        for cell in nbformat.read(path, as_version=4).cells:
            name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
            for output in cell.get("outputs", []) if name else []:
                picture = image(cell, output.get("data", {}))
                if picture:
                    drawn.setdefault(name, picture)
    return drawn


def cut(file: bytes, part: str) -> bytes:
    """A part of a figure: left, top, width and height in percent, for instance ``0,0,100,50``."""
    left, top, width, height = map(int, part.split(","))
    out = io.BytesIO()
    with Image.open(io.BytesIO(file)) as whole:
        box = (left, top, left + width, top + height)
        edges = [round(n * size / 100) for n, size in zip(box, whole.size * 2, strict=True)]
        whole.crop(tuple(edges)).save(out, "PNG")
    return out.getvalue()


@cache
def claims() -> dict[str, dict[str, Any]]:
    """What the ledger knows of each claim."""
    return {row["id"]: row for row in export.ledger(found(), Build("", ""))["claims"]}


def known(table: Mapping[str, T], name: str, what: str) -> T:
    """What has this name.

    Raises:
        ValueError: Nothing has it.
    """
    if name not in table:
        raise ValueError(f"a slide asks for the {what} {name!r}, and there is none")
    return table[name]


def measured(name: str) -> str:
    """A claim's figure, with its interval where it has one."""
    row = known(claims(), name, "claim")
    return ", ".join(filter(None, (row["figure"], row["interval"])))


def verdict(name: str) -> str:
    """A claim's card: what is claimed, the word, the sentence, and what was measured."""
    row = known(claims(), name, "claim")
    word, _, sentence = row["verdict"].partition(": ")
    what = re.split(r"; beside|\. |: the ", row["measure"].rstrip("."))[0]
    figure = f'<p class="figure"><b>{escape(measured(name))}</b> {escape(what)}</p>'
    return (
        f'<div class="verdict {css_class(word)}"><blockquote>{escape(row["statement"])}'
        f'<cite>{name}</cite></blockquote><p><strong class="word">{escape(word)}</strong> '
        f"{escape(sentence)}</p>{figure if row['figure'] else ''}</div>"
    )


def slider(place: str) -> str:
    """The slider of a chapter's cell, as stored: CHAPTER CELL."""
    _, cell = find(*place.split())
    (stored,) = (o.data["text/html"] for o in cell.outputs if "text/html" in o.get("data", {}))
    return stored.replace("\n", " ").replace("<figure ", "<figure data-prevent-swipe ")


def live(model: str) -> str:
    """A model that runs in the slide: MODEL, or MODEL SHOW for one of its panels."""
    name, _, show = model.partition(" ")
    shown = f' data-show="{show}"' if show else ""
    return f'<div class="live" data-prevent-swipe data-model="{name}"{shown}></div>'


@cache
def stills() -> dict[str, str]:
    """Of every drawing of a chapter that answers, the picture of its first state, as Markdown."""
    pattern = re.compile(
        r'<div class="live-part" data-part="(\w+)">.*?(!\[[^]]*\]\([^)]*\))', re.DOTALL
    )
    sources = (nbformat.read(path, as_version=4).cells for path in chapters())
    return dict(found for cells in sources for c in cells for found in pattern.findall(c.source))


def part(name: str) -> str:
    """A drawing of a chapter that answers, and the still picture until it does."""
    alt, file = known(stills(), name, "drawing")[2:-1].split("](_static/")
    return (
        f'<div class="live-part" data-prevent-swipe data-part="{name}">'
        f'<img src="{file}" alt="{escape(alt)}"></div>'
    )


ROLES: dict[str, Callable[[str], str]] = {
    "count": lambda name: f"{known(counts(found()), name, 'count'):,}",
    "live": live,
    "measured": measured,
    "part": part,
    "slider": slider,
    "verdict": verdict,
    "word": lambda name: known(claims(), name, "claim")["word"],
}


def filled(text: str, folder: Path | None = None) -> str:
    """A deck's Markdown with everything in its place; figures are written to the folder.

    Raises:
        ValueError: A figure, a claim or a role is not there, or the script has no such paragraph.
    """

    def picture(match: re.Match[str]) -> str:
        alt, file = known(figures(), match[2], "figure")
        name = "-".join([match[2], *(match[3] or "").split(",")]).rstrip("-") + ".png"
        if folder:
            (folder / name).write_bytes(cut(file, match[3]) if match[3] else file)
        return f"![{match[1] or alt}](figures/{name})"

    text = ROLE.sub(lambda match: known(ROLES, match[1], "role")(match[2]), script.spoken(text))
    return FIGURE.sub(picture, text)
