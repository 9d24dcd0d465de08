"""Sheets that are not of the site: title, contents, and the page numbers, laid over all."""

import io
from collections.abc import Iterable
from html import escape

from playwright.sync_api import Browser
from pypdf import PdfReader

from book.tools.pdf.printed import MARGIN, Printed

CONTENTS = f"""<!doctype html><meta charset="utf-8"><style>
@page {{ size: A4; margin: {MARGIN}pt }}
body {{ font: 11pt/1.35 serif }}
h1 {{ margin: 30mm 0 10mm; font-size: 30pt }}
h2 {{ margin: 4mm 0 1mm; font-size: 12pt; break-after: avoid }}
li {{ display: flex; justify-content: space-between; margin-bottom: 1mm; break-inside: avoid }}
ul {{ margin: 0; padding: 0; break-before: page }}
a {{ color: inherit; text-decoration: none }}
</style>
<h1>Vision transformers</h1>
<p>A book that checks its sources. The minivit authors. Text and figures: CC BY 4.0.</p>
<p>On paper hints and solutions stay folded and sliders stand still. A card in a chapter says only
what was found; the ledger has the rest. Page numbers are those of the file.</p><ul>"""
NUMBERS = f"""<!doctype html><meta charset="utf-8"><style>
@page {{ size: A4; margin: 0 }}
body {{ margin: 0; font: 8pt sans-serif; color: #555 }}
div {{ position: relative; height: 296mm; overflow: hidden; break-after: page }}
p {{ position: absolute; inset: auto {MARGIN}pt 8mm }}
p {{ display: flex; justify-content: space-between }}
</style>"""


def contents(parts: Iterable[Printed]) -> str:
    """Title and table of contents; an address leads to its page, like any other link."""
    return CONTENTS + "".join(
        f'<li><a href="{one.address}">{escape(one.title)}</a><span>{one.first + 1}</span></li>'
        if one.file
        else f"<h2>{escape(one.title)}</h2>"
        for one in parts
    )


def numbers(titles: Iterable[str]) -> str:
    """For each page of the book a sheet that is empty but for its foot."""
    return NUMBERS + "".join(
        f"<div><p><span>{escape(title)}</span><span>{number}</span></p></div>"
        for number, title in enumerate(titles, 1)
    )


def sheets(browser: Browser, html: str) -> PdfReader:
    """A text of the above, printed."""
    tab = browser.new_page()
    tab.set_content(html)
    file = tab.pdf(prefer_css_page_size=True, print_background=True)
    tab.close()
    return PdfReader(io.BytesIO(file))
