"""Makes one PDF of the built site: ``make pdf`` writes ``_build/book.pdf``.

Chromium prints every page in the order of ``_toc.yml``; then they are bound, with a table of
contents, an outline, page numbers, and links that lead to pages of the file. What is folded on a
page stays so; of a verdict's card in a chapter all but what was found is left out.
"""

from book.tools import chromium
from book.tools.address import ROOT, SITE
from book.tools.pdf.bind import bind
from book.tools.pdf.sheets import Sheets, entries, print_page

OUT = ROOT / "_build/book.pdf"

if __name__ == "__main__":
    with chromium.browser() as browser:
        parts = []
        for kind, name in entries():
            page = (SITE / f"{name}.html").as_uri()
            parts.append(print_page(browser, page) if kind == "page" else Sheets(name))
        book = bind(browser, parts)
    book.add_metadata({"/Title": "Vision transformers: a book that checks its sources"})
    book.compress_identical_objects()
    book.write(OUT)
    print(f"The book is printed: {OUT}, {len(book.pages)} pages.")
