"""Each gate catches the fault that it is there for, and lets a sound page pass."""

from pathlib import Path

import pytest

from book.tools.page_gates import PAGE_GATES
from book.tools.site_gates import (
    GATES,
    HEAVIEST,
    alt_texts,
    broken_links,
    foreign_urls,
    heavy_pages,
)
from tests.site.conftest import GOOD_ALT


@pytest.mark.parametrize("gate", [*GATES, *PAGE_GATES], ids=lambda gate: gate.__name__)
def test_a_sound_site_passes(gate, site: Path):
    assert gate(site) == []


@pytest.mark.parametrize("gate", [*GATES, *PAGE_GATES], ids=lambda gate: gate.__name__)
def test_a_missing_site_is_an_error_and_no_pass(gate, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="make site"):
        gate(tmp_path)


@pytest.mark.parametrize(
    "planted",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<script src="//cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="https://cdn.example.org/a.css">',
        '<link rel="preconnect" href="https://fonts.example.org">',
        f'<img src="https://example.org/a.png" {GOOD_ALT}>',
        f'<img src="logo.svg" srcset="logo.svg 1x, https://example.org/a.png 2x" {GOOD_ALT}>',
        '<iframe src="https://example.org/"></iframe>',
        '<object data="https://example.org/a.pdf"></object>',
        '<video poster="https://example.org/a.png"></video>',
        '<svg aria-hidden="true"><use href="https://example.org/a.svg#x"/></svg>',
        "<p style=\"background: url('https://example.org/a.png')\">text</p>",
        '<style>@import "https://example.org/a.css";</style>',
        '<script type="module">import { a } from "https://cdn.example.org/a.js";</script>',
        '<script>import("https://cdn.example.org/a.js")</script>',
        "<script>fetch('https://example.org/a.json')</script>",
    ],
)
def test_a_foreign_url_in_a_page_is_found(planted: str, site: Path):
    plant(site, planted)
    (problem,) = foreign_urls(site)
    assert problem.startswith("index.html: fetches ") and "example.org" in problem


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("book.css", "@font-face { src: url(https://fonts.example.org/a.woff2) }"),
        ("book.css", '@import "//example.org/a.css";'),
        ("book.js", 'import a from "https://cdn.example.org/a.js";'),
        ("book.js", 'const a = await fetch("https://example.org/a.json");'),
    ],
)
def test_a_foreign_url_in_a_shared_file_is_found(file: str, text: str, site: Path):
    for encoding in ("utf-8", "utf-16"):  # the latter with its mark, as models of pages have it
        (site / "_static" / file).write_text(text, encoding=encoding)
        (problem,) = foreign_urls(site)
        assert problem.startswith(f"_static/{file}: fetches ")


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ('<img src="logo.svg">', "no alt text"),
        ('<img src="logo.svg" alt="">', "does not say"),
        ('<img src="logo.svg" alt=" ">', "does not say"),
        ('<img src="logo.svg" alt="A curve">', "does not say"),
        ('<img src="logo.svg" alt="_images/attention_over_patches.png">', "does not say"),
        ('<img src="logo.svg" alt="attention-over-patches">', "does not say"),
        ('<a href="#top"><img src="logo.svg" alt=""></a>', "does not say"),
        ('<div class="output text_html"><img src="data:image/png;base64,A"></div>', "no alt text"),
        ('<svg role="img"></svg>', "does not say"),
    ],
)
def test_an_image_without_a_text_is_found(planted: str, fault: str, site: Path):
    plant(site, planted)
    (problem,) = alt_texts(site)
    assert problem.startswith("index.html: ") and fault in problem


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ('<a href="gone.html">there</a>', "leads nowhere"),
        ('<a href="404.html#gone">there</a>', "an anchor that is not there"),
        ('<a href="#gone">there</a>', "an anchor that is not there"),
        (f'<img src="gone.png" {GOOD_ALT}>', "leads nowhere"),
        ('<script src="_static/gone.js"></script>', "leads nowhere"),
    ],
)
def test_a_broken_link_is_found(planted: str, fault: str, site: Path):
    plant(site, planted)
    (problem,) = broken_links(site)
    assert problem.startswith("index.html: ") and fault in problem


def test_a_page_that_is_heavy_by_itself_is_found(site: Path):
    plant(site, f"<p>{'x' * HEAVIEST}</p>")
    (problem,) = heavy_pages(site)
    assert problem.startswith("index.html: ")


def test_a_page_that_is_heavy_by_its_images_is_found_unless_they_are_shared(site: Path):
    (site / "big.png").write_bytes(b"x" * HEAVIEST)
    plant(site, f'<img src="big.png" {GOOD_ALT}>')
    (problem,) = heavy_pages(site)
    assert problem.startswith("index.html: ")
    plant(site, f'<img src="big.png" {GOOD_ALT}>', page="404.html")
    assert heavy_pages(site) == []


def plant(site: Path, html: str, page: str = "index.html") -> None:
    """Puts a piece of HTML at the end of a page."""
    end = "</article></body>" if page == "index.html" else "</body>"
    text = (site / page).read_text()
    (site / page).write_text(text.replace(end, f"{html}{end}"))
