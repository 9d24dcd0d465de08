"""Pages on paper: those of the site, and title, contents and page numbers, laid over all."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Template
from playwright.sync_api import Browser, BrowserContext
from pypdf import PdfReader

from book.tools.edition.contents import pages_of
from book.tools.edition.tree import load

LEFT_OUT = ("book/solutions", "book/api", "book/teaching/exam_marking", "book/teaching/quiz")
HEIGHT = 842.88  # points of a sheet, A4 as Chromium has it
MARGIN = 51  # points, on each side
SCALE = 0.8  # type of 16 pixels becomes 9.6 points


def beside(name: str, **values: Any) -> str:
    """The text of a file of this folder, with these values in their places, and the margin."""
    template = Template(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return template.render(values, MARGIN=MARGIN, escape=escape)


@dataclass
class Sheets:
    """What the book consists of: parts, which have no sheets of their own, and pages."""

    title: str
    address: str = ""
    file: PdfReader | None = None
    headings: list[tuple[str, str]] = field(default_factory=list)  # anchor and text
    first: int = 0  # the index of its first sheet in the book

    def __len__(self) -> int:
        return len(self.file.pages) if self.file else 0


def entries() -> Iterator[tuple[str, str]]:
    """``("part", title)`` and ``("page", name)`` in order, without what is left out."""
    contents = load("_toc.yml")
    yield "page", contents["root"]
    for part in contents["parts"]:
        if "caption" in part:
            yield "part", part["caption"]
        yield from (("page", page) for page in pages_of(part) if not page.startswith(LEFT_OUT))


def print_page(browser: Browser | BrowserContext, address: str) -> Sheets:
    """A page, as Chromium prints it when all that belongs on it is there."""
    margin = dict.fromkeys(("top", "bottom", "left", "right"), f"{MARGIN / 0.75}px")
    with browser.new_page() as tab:
        tab.goto(address)
        tab.add_style_tag(content=beside("look.css"))
        title, headings = tab.evaluate(beside("settle.js"))
        file = tab.pdf(format="A4", scale=SCALE, print_background=True, margin=margin)
    return Sheets(title, address, PdfReader(io.BytesIO(file)), headings)


def print_html(browser: Browser, html: str) -> PdfReader:
    """A text, such as ``contents.html``, printed."""
    with browser.new_page() as tab:
        tab.set_content(html)
        file = tab.pdf(prefer_css_page_size=True, print_background=True)
    return PdfReader(io.BytesIO(file))
