"""A small site in which no gate finds a fault; the tests plant one."""

import random
from pathlib import Path

import pytest

from book.tools.address import SITE
from book.tools.gates import pages

GOOD_ALT = 'alt="A curve that rises and then falls again."'
META = {
    "og:type": "article",
    "og:site_name": "Vision transformers",
    "og:title": "Attention",
    "og:description": "How every patch of an image asks all the others for what it needs.",
    "description": "How every patch of an image asks all the others for what it needs.",
    "twitter:card": "summary_large_image",
}
VIEWPORT = '<meta name="viewport" content="width=device-width">'
SOUND = f"""<!doctype html><html><head><title>Attention - Vision transformers</title>
{VIEWPORT}
{"".join(f'<meta property="{key}" content="{value}">' for key, value in META.items())}
<link rel="stylesheet" href="_static/book.css"><link rel="author" href="https://example.org/">
<script src="_static/book.js"></script></head>
<body><article><h1 id="top">A page</h1><a href="https://example.org/">elsewhere</a>
<a href="404.html#end">inside</a><a href="#top">up</a>
<svg class="icon fa-sun" aria-hidden="true"></svg><span class="math"><math><mi>x</mi><annotation>\\xi</annotation></math></span>
<img src="a.png" width="2" height="1" {GOOD_ALT}>
<img src="logo.svg" {GOOD_ALT}>
<img src="b.png" width="2" height="1" loading="lazy" {GOOD_ALT}>
<img src="data:image/png;base64,AAAA" width="2" height="1" {GOOD_ALT}>
<svg role="img"><title>Two curves that cross at the middle.</title></svg>
<a href="#top"><img src="logo.svg" alt=""> The title</a></article></body></html>"""


@pytest.fixture(scope="session")
def trees():
    """The pages of the book's site."""
    return dict(pages(SITE))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "_static").mkdir()
    style = "@font-face { src: url(a.woff2) } p { background: url(paper.png) }"
    (tmp_path / "_static/book.css").write_text(style)
    (tmp_path / "_static/a.woff2").write_bytes(noise(1000))
    (tmp_path / "_static/book.js").write_text('fetch("local.json"); // see https://example.org')
    for image in ("a.png", "b.png", "logo.svg"):
        (tmp_path / image).touch()
    (tmp_path / "index.html").write_text(SOUND)
    (tmp_path / "404.html").write_text('<html><body><p id="end">The end</p></body></html>')
    return tmp_path


def noise(size: int) -> bytes:
    """Text that is longer than this many bytes even when it is compressed."""
    return random.Random(0).randbytes(size).hex().encode()


def change(site: Path, old: str, new: str, page: str = "index.html") -> None:
    text = (site / page).read_text()
    assert old in text
    (site / page).write_text(text.replace(old, new))


def plant(site: Path, html: str, page: str = "index.html") -> None:
    """Puts a piece of HTML at the end of a page."""
    end = "</article></body>" if page == "index.html" else "</body>"
    change(site, end, f"{html}{end}", page)
