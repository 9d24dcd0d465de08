"""Puts printed pages into one file, with contents, page numbers, links and an outline."""

from collections.abc import Iterator
from urllib.parse import unquote, urldefrag, urljoin

from playwright.sync_api import Browser
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, Fit, NameObject, RectangleObject

from book.tools.pdf.sheets import HEIGHT, MARGIN, SCALE, Sheets, beside, print_html


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
            sheet.pop(NameObject("/Annots"), None)
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
    for reference in page.get("/Annots", ArrayObject()):
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
