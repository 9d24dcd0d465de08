"""Pages of the site on paper, and in one file: contents, page numbers, links and an outline."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from jinja2 import Template
from playwright.sync_api import Browser, BrowserContext
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import Fit, RectangleObject

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


def bind(browser: Browser, pages: list[Sheets]) -> PdfWriter:
    def contents() -> PdfReader:
        return print_html(browser, beside("contents.html", parts=pages))

    front = Sheets("Contents", "contents:", contents())
    parts = [front, *pages]
    for before, part in zip(parts, pages, strict=False):
        part.first = before.first + len(before)
    front.file = contents()  # once more, now that the numbers are known
    titles = [part.title for part in parts for _ in range(len(part))]
    feet = print_html(browser, beside("feet.html", titles=titles))

    book, annotations = PdfWriter(), []
    for part in parts:
        for sheet in part.file.pages if part.file else ():
            number = len(book.pages)
            annotations += [(number, area, urljoin(part.address, to)) for area, to in links(sheet)]
            sheet.annotations = None
            book.add_page(sheet).merge_page(feet.pages[number])
    by_address = {part.address: part for part in parts if part.file}
    for number, area, address in annotations:
        page_address, anchor = urldefrag(address)
        if page_address in by_address:
            index, fit = place(by_address[page_address], unquote(anchor))
            link = Link(rect=area, target_page_index=index, fit=fit)
        elif address.startswith("http"):
            link = Link(rect=area, url=address)
        else:
            continue  # leads to what is left out
        book.add_annotation(number, link)
    for sheet in book.pages:
        sheet.compress_content_streams()
    outline(book, parts)
    return book


def links(page: PageObject) -> Iterator[tuple[RectangleObject, str]]:
    """Where a printed page has links, and to which address; one of its own places is #name."""
    for reference in page.annotations or ():
        note = reference.get_object()
        if "/Dest" in note:
            yield note["/Rect"], "#" + str(note["/Dest"]).removeprefix("/")
        elif "/URI" in note.get("/A", {}):
            yield note["/Rect"], str(note["/A"]["/URI"])


def place(page: Sheets, anchor: str) -> tuple[int, Fit]:
    """The sheet of the book, and the place on it, where an anchor is, or where the page begins."""
    target = page.file.named_destinations.get("/" + anchor) if anchor else None
    sheet = page.file.get_destination_page_number(target) if target else None
    if sheet is None or target.top is None:
        return page.first, Fit.fit_horizontally()
    # Chromium notes places as they were before it scaled the page and moved it past the margin.
    top = HEIGHT - MARGIN - SCALE * (HEIGHT - float(target.top))
    return page.first + sheet, Fit.xyz(top=top)


def outline(book: PdfWriter, parts: list[Sheets]) -> None:
    """Parts, their pages, and the headings of these, for the viewer's sidebar."""
    parent = None
    for part in parts:
        where = {"title": part.title, "page_number": part.first, "is_open": False}
        if part.file is None:
            parent = book.add_outline_item(**where)
            continue
        item = book.add_outline_item(**where, parent=parent)
        for anchor, text in part.headings:
            index, fit = place(part, anchor)
            book.add_outline_item(title=text, page_number=index, parent=item, fit=fit)
