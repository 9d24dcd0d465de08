"""Prints and binds the book."""

from pathlib import Path

from book.tools import chromium
from book.tools.address import ROOT, SITE
from book.tools.pdf.bind import bound
from book.tools.pdf.printed import Printed, entries, printed


def main(out: Path = ROOT / "_build/book.pdf", site: Path = SITE) -> None:
    """Writes the book from the built site."""
    if not (site / "index.html").is_file():
        raise FileNotFoundError(f"no site in {site}: build it with `make site`")
    with chromium.opened() as browser:
        parts = [
            printed(browser, (site / f"{name}.html").as_uri()) if kind == "page" else Printed(name)
            for kind, name in entries()
        ]
        book = bound(browser, parts)
    book.add_metadata({"/Title": "Vision transformers: a book that checks its sources"})
    book.compress_identical_objects()
    book.write(out)
    print(f"The book is printed: {out}, {len(book.pages)} pages.")


if __name__ == "__main__":
    main()
