"""Pages become one PDF: in order, numbered, linked, and with nothing cut off."""

import re
import shutil
import subprocess

import pytest
from PIL import Image
from pypdf import PdfReader, PdfWriter

from book.tools.pdf.sheets import MARGIN, Sheets, bind, print_page

A4 = 595  # points wide
FIRST = """<html><meta charset="utf-8">
<article class="bd-article"><section id="one"><h1><span>1. </span>One<a href="#one">#</a></h1>
<p><a href="two.html#deep">across</a> <a href="#below">within</a> <a href="two.html">whole</a>
<a href="gone.html">left out</a> <a href="https://example.org/">elsewhere</a></p>
<section id="below"><h2>Below<a href="#below">#</a></h2></section></section></article></html>"""
SECOND = """<html><meta charset="utf-8"><article class="bd-article"><h1>2. Two</h1>
<div style="height: 2000px"></div><p id="deep">deep down</p></article></html>"""


@pytest.fixture(scope="module")
def book(browser, tmp_path_factory):
    """Two pages in a part, bound and read again."""
    folder = tmp_path_factory.mktemp("pages")
    for name, html in (("one", FIRST), ("two", SECOND)):
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    pages = [print_page(browser, (folder / f"{name}.html").as_uri()) for name in ("one", "two")]
    bind(browser, [Sheets("A part"), *pages]).write(folder / "book.pdf")
    return PdfReader(folder / "book.pdf")


def targets(book, page):
    """Where the links of a page lead: to the index of a page and a height on it, or an address."""
    for one in book.pages[page].get("/Annots", ()):
        note = one.get_object()
        if "/Dest" in note:
            index, kind, *place = note["/Dest"]
            number = index if isinstance(index, int) else book.get_page_number(index)
            yield number, float(place[1]) if kind == "/XYZ" else None
        else:
            yield note["/A"]["/URI"]


def height(book, page, words):
    """How high above the foot of a page some words stand, in points."""
    found = []

    def visit(text, matrix, line, *_):
        if words in text:
            found.append(matrix[1] * line[4] + matrix[3] * line[5] + matrix[5])

    book.pages[page].extract_text(visitor_text=visit)
    return found[0]


def test_pages_come_in_order_behind_the_contents_which_lead_there(book):
    texts = [page.extract_text() for page in book.pages]
    assert len(texts) == 5  # a title, the contents, one page and two
    assert "Vision transformers" in texts[0] and "across" in texts[2] and "deep down" in texts[4]
    assert [text.split()[-1] for text in texts] == ["1", "2", "3", "4", "5"]
    words = texts[1].split()
    assert words[words.index("One") + 1] == "3" and words[words.index("Two") + 1] == "4"
    assert [page for page, _ in targets(book, 1)] == [2, 3]


def test_links_and_the_outline_lead_to_places_of_the_file_and_others_out_of_it(book):
    _, *found = targets(book, 2)  # the first stands beside the title
    (across, top), (within, below), whole, elsewhere = found[:4]
    assert (across, within, whole) == (4, 2, (3, None))
    assert 0 <= top - height(book, 4, "deep down") < 30
    assert 0 <= below - height(book, 2, "Below") < 40
    assert elsewhere == "https://example.org/"
    assert not any("gone" in str(target) for target in found)
    # So does the outline: to parts, pages and headings.
    contents, part, (one, (below,), two) = book.outline
    titles = [entry["/Title"] for entry in (contents, part, one, below, two)]
    assert titles == ["Contents", "A part", "1. One", "Below", "2. Two"]
    assert book.get_destination_page_number(two) == 3


@pytest.mark.skipif(not shutil.which("pdftoppm"), reason="pdftoppm is not installed")
@pytest.mark.parametrize("page", ["book/02_attention.html", "book/ledger.html"])
def test_paper_is_white_and_holds_every_word(browser, site, page, tmp_path):
    context = browser.new_context(color_scheme="dark")
    sheets = PdfWriter()
    sheets.append(print_page(context, site + page).file, pages=(0, 8))
    sheets.write(tmp_path / "page.pdf")
    draw = ["pdftoppm", "-r", "20", "-gray", tmp_path / "page.pdf", tmp_path / "p"]
    subprocess.run(draw, check=True)
    for file in tmp_path.glob("*.pgm"):
        with Image.open(file) as sheet:
            assert sorted(sheet.get_flattened_data())[sheet.width * sheet.height // 3] > 200
    words = subprocess.check_output(["pdftotext", "-bbox", tmp_path / "page.pdf", "-"], text=True)
    edges = [float(x) for x in re.findall(r'x(?:Min|Max)="([\d.-]+)"', words)]
    assert len(edges) > 1000 and min(edges) > MARGIN - 1 and max(edges) < A4 - MARGIN + 1
