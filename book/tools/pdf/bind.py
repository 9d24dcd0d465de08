"""Puts printed pages into one file, with contents, page numbers, links and an outline."""

from collections.abc import Iterator
from urllib.parse import unquote, urldefrag, urljoin

from playwright.sync_api import Browser
from pypdf import PageObject, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, Fit, NameObject, RectangleObject

from book.tools.pdf.printed import HEIGHT, MARGIN, SCALE, Printed
from book.tools.pdf.sheets import contents, numbers, sheets


def bound(browser: Browser, parts: list[Printed]) -> PdfWriter:
    """The book."""
    front = Printed("Contents", "contents:", sheets(browser, contents(parts)))
    parts = [front, *parts]
    for before, one in zip(parts, parts[1:], strict=False):
        one.first = before.first + before.sheets
    front.file = sheets(browser, contents(parts[1:]))  # once more, now that the numbers are known
    feet = sheets(browser, numbers(one.title for one in parts for _ in range(one.sheets)))

    book, found = PdfWriter(), []
    for one in parts:
        for page in one.file.pages if one.file else ():
            number = len(book.pages)
            found += [(number, area, urljoin(one.address, to)) for area, to in links(page)]
            page.pop(NameObject("/Annots"), None)
            book.add_page(page).merge_page(feet.pages[number])
    by_address = {one.address: one for one in parts if one.file}
    for number, area, address in found:
        page_address, anchor = urldefrag(address)
        if page_address in by_address:
            index, fit = place(by_address[page_address], unquote(anchor))
            book.add_annotation(number, Link(rect=area, target_page_index=index, fit=fit))
        elif address.startswith("http"):
            book.add_annotation(
                number, Link(rect=area, url=address)
            )  # others lead to what is left out
    for page in book.pages:
        page.compress_content_streams()
    outline(book, parts)
    return book


def links(page: PageObject) -> Iterator[tuple[RectangleObject, str]]:
    """Where a printed page has links, and to which address; one of its own places is #name."""
    for one in page.get("/Annots", ArrayObject()):
        note = one.get_object()
        if "/Dest" in note:
            yield note["/Rect"], "#" + str(note["/Dest"]).removeprefix("/")
        elif "/URI" in note.get("/A", {}):
            yield note["/Rect"], str(note["/A"]["/URI"])


def place(one: Printed, anchor: str) -> tuple[int, Fit]:
    """The sheet of the book, and the place on it, where an anchor is, or where the page begins."""
    found = one.file.named_destinations.get("/" + anchor) if one.file and anchor else None
    sheet = one.file.get_destination_page_number(found) if one.file and found else None
    if found is None or sheet is None or found.top is None:
        return one.first, Fit.fit_horizontally()
    # Chromium notes places as they were before it scaled the page and moved it past the margin.
    top = HEIGHT - MARGIN - SCALE * (HEIGHT - float(found.top))
    return one.first + sheet, Fit.xyz(top=top)


def outline(book: PdfWriter, parts: list[Printed]) -> None:
    """Parts, their pages, and the headings of these, for the viewer's sidebar."""
    part = None
    for one in parts:
        if one.file is None:
            part = book.add_outline_item(title=one.title, page_number=one.first, is_open=False)
            continue
        item = book.add_outline_item(
            title=one.title, page_number=one.first, parent=part, is_open=False
        )
        for anchor, text in one.headings:
            index, fit = place(one, anchor)
            book.add_outline_item(title=text, page_number=index, parent=item, fit=fit)
