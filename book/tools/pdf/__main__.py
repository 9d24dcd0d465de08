"""Makes one PDF of the built site: ``make pdf`` writes ``_build/book.pdf``.

Chromium prints all pages in the order of ``_toc.yml``, chapters into ``_build/chapters``, too; then
they are bound, with contents, an outline, page numbers, and links that lead to pages of the file.
What is folded on a page stays so; a verdict's card in a chapter keeps only what was found.
"""

from pypdf import PdfWriter

from book.tools import chromium
from book.tools.address import ROOT, SITE
from book.tools.pdf.sheets import Sheets, bind, entries, print_page

OUT, EACH = ROOT / "_build/book.pdf", ROOT / "_build/chapters"

if __name__ == "__main__":
    EACH.mkdir(parents=True, exist_ok=True)
    with chromium.browser() as browser:
        parts = []
        for kind, name in entries():
            page = (SITE / f"{name}.html").as_uri()
            parts.append(print_page(browser, page) if kind == "page" else Sheets(name))
            if name[5:7].isdigit() and parts[-1].file:  # a chapter, alone as well
                PdfWriter(parts[-1].file).write(EACH / f"{name[5:]}.pdf")
        book = bind(browser, parts)
    book.add_metadata({"/Title": "Vision transformers: a book that checks its sources"})
    book.compress_identical_objects()
    book.write(OUT)
    print(f"The book is printed: {OUT}, {len(book.pages)} pages.")
