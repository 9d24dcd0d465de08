"""The e-book has the pages in order, with links that lead inside it and images that it can show."""

import base64
import io
import re
import zipfile

import pytest
from PIL import Image

from book.tools import epub

FIRST = """<article class="bd-article"><section id="one"><h1>1. One<a class="headerlink" href="#one">#</a></h1>
<p><a href="two.html#deep">across</a> <a href="two.html#fig-x">figure</a> <a href="two.html#term-y">term</a> <a href="two.html">whole</a> <a href="gone.html">left out</a>
<span class="math">\\(x^2\\)</span></p><img alt="red" src="red.webp"><img alt="blue" src="data:image/webp;base64,{}">
<figure class="frames"><input type="range"><img alt="hidden" src="red.webp" hidden></figure>
<details class="dropdown"><summary>Hint</summary><p>folded away</p></details>
<div class="cell"><details class="verdict"><summary>R1 holds</summary><dl><dt>Verdict</dt><dd>found</dd>
<dt>Measured</dt><dd>number</dd><dt>Rule</dt><dd>thresholds</dd></dl></details></div></section></article>"""
SECOND = """<article class="bd-article"><section id="two"><h1>2. Two</h1><section id="deep"><h2>Deep down</h2>
<p><a href="one.html#one">back</a></p><figure id="fig-x"><img alt="red" src="red.webp"><figcaption>A caption.
<span class="take">Take it: <a href="red.png" download="fig-x.png">PNG</a></span></figcaption></figure>
<dl><dt id="term-y">y</dt><dd>a term</dd></dl></section></section></article>"""


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The texts of an e-book of two pages, by file, and what else is in it."""
    folder = tmp_path_factory.mktemp("site")
    webp = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(webp, "WEBP")
    (folder / "red.webp").write_bytes(webp.getvalue())
    first = FIRST.format(base64.b64encode(webp.getvalue()).decode())
    for name, html in (("one", first), ("two", SECOND)):
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epub, "entries", lambda: [("page", "one"), ("part", "II"), ("page", "two")])
        epub.main(folder / "book.epub", folder)
    with zipfile.ZipFile(folder / "book.epub") as file:
        return {name: file.read(name) for name in file.namelist()}


def test_every_page_is_a_chapter_in_order_and_says_what_was_found(book):
    one, two = (book[f"EPUB/text/ch00{n}.xhtml"].decode() for n in (1, 2))
    assert len([name for name in book if re.fullmatch(r"EPUB/text/ch\d+\.xhtml", name)]) == 2
    assert re.search("<h1[^>]*>1. One<", one) and re.search("<h1[^>]*>2. Two<", two)
    contents = book["EPUB/nav.xhtml"].decode()
    assert "1. One" in contents and "<span" not in contents
    images = [name for name in book if "/media/" in name]
    assert len(images) == 3 and all(book[name].startswith(b"\x89PNG") for name in images)
    assert 'alt="hidden"' not in one
    assert "<math" in one and "\\(x" not in one
    assert "Take it" not in two and "A caption" in two
    assert "folded away" not in one and "thresholds" not in one
    assert all(word in one for word in ("R1 holds", "found", "number"))
    # Links lead to chapters, and lose their target where it is left out.
    links = dict(re.findall(r'<a\s+href="([^"]*)"[^>]*>(\w+)', one))
    assert links == {"ch002.xhtml#two--deep": "across", "ch002.xhtml#two--": "whole",
                     "ch002.xhtml#two--fig-x": "figure", "ch002.xhtml#two--term-y": "term"}  # fmt: skip
    assert 'id="two--deep"' in two and "left out" in one
    assert 'href="ch001.xhtml#one--one"' in two
    pages = {name.rpartition("/")[2]: file.decode() for name, file in book.items() if name.endswith(".xhtml")}  # fmt: skip
    places = {f"{name}#{place}" for name, page in pages.items() for place in re.findall(r'\sid="([^"]*)"', page)}  # fmt: skip
    targets = {link.rpartition("/")[2] if link[0] != "#" else name + link
               for name, page in pages.items() for link in re.findall(r'href="([^"]*#[^"]*)"', page)}  # fmt: skip
    assert len(targets) > 5 and targets <= places
