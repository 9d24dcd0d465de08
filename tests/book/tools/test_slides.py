"""Slides and the e-book say nothing of the book that is not so, and show what they hold."""

import base64
import io
import re
import zipfile
from functools import cache

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from book._ext.live import MODELS
from book.tools import epub, npm, script, slides, weeks
from book.tools.notebooks import cells
from book.tools.slide_parts import FIGURE, ROLE, claims, cut, figures, filled
from course.claims.rows import BOOK
from course.quiz import bank

SOURCES = {deck: (slides.SOURCES / f"{deck}.md").read_text("utf-8") for deck in slides.DECKS}
PAGE = (BOOK / "teaching/slides.md").read_text(encoding="utf-8")
NOTES = re.compile(r"::: notes\n(.*?)\n:::", re.DOTALL)
FEW = 60  # words of a slide
ROOM = 1180, 540  # pixels that a figure has on a slide
SMALLEST = 12  # pixels of type that can be read from the back


@cache
def parts(deck):
    """The slides of a deck, each as its source with the lecture's script in place."""
    return re.split(r"(?m)^## ", script.spoken(SOURCES[deck]))[1:]


def minutes(deck):
    return sum(map(int, re.findall(r"timing=(\d+)", script.spoken(SOURCES[deck])))) / 60


def test_what_is_not_there_is_named():
    unknown = {"fig-none": "![](figure:fig-none)", "X99": "{verdict}`X99`", "wrod": "{wrod}`R06`"}
    for name, source in unknown.items():
        with pytest.raises(KeyError, match=name):
            filled(source)


def test_models_show_what_there_is_to_be_shown_and_a_verdict_is_the_ledgers():
    code = (BOOK / "_static/live/live.js").read_text(encoding="utf-8")
    shows = re.findall(r"(?m)^    (\w+): \[\[", code)
    asked = re.findall(r"\{live\}`(\w+) ?(\w*)`", "".join(SOURCES.values()))
    assert len(asked) >= 4 and {show for _, show in asked} <= {"", *shows}
    assert {model for model, _ in asked} <= set(MODELS)
    row, text = claims()["R43"], filled("{verdict}`R43`")
    assert row["word"] in text and row["figure"] in text and "verdict-refuted" in text
    assert filled("{word}`R43`") == row["word"]


@pytest.mark.parametrize("deck", SOURCES)
def test_a_deck_has_what_it_shows_large_enough_and_its_length_stands_on_the_page(deck):
    text = filled(SOURCES[deck])
    assert not ROLE.search(text.replace("\\", ""))
    assert "figure:" not in text and "script=" not in text
    with plt.style.context("vitlab.figures.book"):
        points, dpi = plt.rcParams["legend.fontsize"], plt.rcParams["savefig.dpi"]
    for _, name, part in FIGURE.findall(SOURCES[deck]):
        file = figures()[name][1]
        with Image.open(io.BytesIO(cut(file, part) if part else file)) as image:
            scale = min(room / size for room, size in zip(ROOM, image.size, strict=True))
        assert points * dpi / 72 * scale >= SMALLEST, (name, image.size)
    row = re.search(rf"(?m)^\| `{deck}`.*?\| (\d+) \| (\d+) \|$", PAGE)
    assert (int(row[1]), int(row[2])) == (len(parts(deck)), int(minutes(deck) + 0.5))


@pytest.mark.parametrize("deck", SOURCES)
def test_every_slide_has_notes_minutes_and_few_words_and_types_no_figure_of_a_claim(deck):
    for part in parts(deck):
        title = part.splitlines()[0]
        assert re.search(r"timing=\d+", title), title
        assert NOTES.search(part) or "timing=0" in title, title
        said = re.sub(r"!\[.*?\]\(.*?\)|\{.*?\}(`[^`]+`)?|\$\$.*?\$\$", "", NOTES.sub("", part))
        assert len(re.findall(r"[^\W\d]\w+", said)) <= FEW, title
        for name in re.findall(r"\{(?:verdict|measured|word)\}`(\w+)`", part):
            for number in re.findall(r"\d+\.\d+|\d{2,}", claims()[name]["figure"]):
                typed = NOTES.sub("", part) if deck == "lecture" else part  # the script is spoken
                assert not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", typed), (name, number)


def test_the_lecture_is_its_script_from_the_first_word_to_the_last():
    spans = re.findall(r"script=([\d.-]+)", SOURCES["lecture"])
    said = [text for span in spans for text in script.paragraphs(span)]
    assert said == [text for section in script.sections() for text in section]
    assert 40 < minutes("lecture") <= 45


def test_there_is_a_deck_for_every_source_and_those_of_the_parts_have_every_chapter():
    assert sorted(SOURCES) == sorted(path.stem for path in slides.SOURCES.glob("*.md"))
    titles = {}
    for path in sorted(BOOK.glob("[0-9]*.ipynb"))[1:]:
        heading = next(cell.source for cell in cells(path) if cell.cell_type == "markdown")
        titles[int(path.stem[:2])] = heading.splitlines()[0].removeprefix("# ")
    found = re.findall(r"(?m)^## (\d+)\. (.+?) \{\.chapter", "\n".join(SOURCES.values()))
    assert {int(number): title for number, title in found} == titles


def test_a_figure_is_cut_and_markdown_becomes_slides_with_their_time_and_notes():
    file = io.BytesIO()
    Image.new("RGB", (200, 100)).save(file, "PNG")
    with Image.open(io.BytesIO(cut(file.getvalue(), "10,20,50,30"))) as part:
        assert part.size == (100, 30)
    deck = "## One {timing=90}\n\nText\n\n::: notes\nSay it\n:::\n"
    html = slides.page(filled(f"---\ntitle: T\nsubtitle: S\n---\n{deck}"))
    for part in ('data-timing="90"', '<aside class="notes">', "reveal/reveal.js"):
        assert part in html


def test_an_archive_that_was_not_tried_is_refused_and_removed(tmp_path):
    archive = tmp_path / f"{slides.REVEAL}.tgz"
    archive.write_bytes(b"something else")
    with pytest.raises(ValueError, match="checksum differs"):
        list(npm.files_of(slides.REVEAL, slides.SHA512, slides.TAKEN, tmp_path))
    assert not archive.exists()


@pytest.mark.parametrize("name", weeks.NAMES)
def test_a_week_has_its_session_a_formula_a_stub_a_wrong_answer_and_a_vote(name):
    text = filled(deck := weeks.deck(name))
    assert not ROLE.search(text) and "](figure:" not in text
    titles = re.findall(r"(?m)^## (.+?) \{timing=(\d+)\}$", deck)
    assert len(NOTES.findall(deck)) == len(titles) and sum(int(s) for _, s in titles) >= 90 * 60
    *_, formula, stub, wrong, vote = [title for title, _ in titles]
    assert (formula, stub, vote) == ("The formula", "Yours to write", "Vote")
    for figure in re.findall(r"\(figure:([\w-]+)#", deck):  # which is shown whole afterwards
        assert f"(figure:{figure})" in deck.partition(f"{figure}#")[2], figure
    assert "raise NotImplementedError" in deck and "Right: " in deck
    message = deck.split(wrong)[1].split("\n> ")[1].split("\n")[0]
    assert len(message) > 20 and any(item.says in message for item in bank() if item.says)


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
