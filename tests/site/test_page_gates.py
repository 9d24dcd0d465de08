"""Each gate for what a page costs and says catches its fault, and lets a sound page pass."""

import random
from pathlib import Path

import pytest

from tools.page_gates import FIRST_LOAD, PAGE_GATES, first_load, icons, metadata, pictures

META = {
    "og:type": "article",
    "og:site_name": "Vision transformers",
    "og:title": "Attention",
    "og:description": "How every patch of a picture asks all the others for what it needs.",
    "description": "How every patch of a picture asks all the others for what it needs.",
    "twitter:card": "summary_large_image",
}
ALT = 'alt="A curve that rises and then falls again."'
SOUND = f"""<!doctype html><html><head><title>Attention - Vision transformers</title>
{"".join(f'<meta property="{key}" content="{value}">' for key, value in META.items())}
<link rel="stylesheet" href="_static/book.css"><script src="_static/book.js"></script></head>
<body><article><svg class="icon fa-sun" aria-hidden="true"></svg><span class="math">x</span>
<script src="_static/mathjax/tex.js"></script><img src="a.png" width="2" height="1" {ALT}>
<img src="a.svg" {ALT}>
<img src="b.png" width="2" height="1" loading="lazy" {ALT}>
<img src="data:image/png;base64,AAAA" width="2" height="1" {ALT}></article></body></html>"""
CARD = '<link rel="canonical" href="https://example.org/"><meta property="og:url" content="x">'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "_static/mathjax").mkdir(parents=True)
    (tmp_path / "_static/book.css").write_text("@font-face { src: url(a.woff2) format('woff2') }")
    (tmp_path / "_static/a.woff2").write_bytes(noise(1000))
    (tmp_path / "_static/book.js").write_text("let x;")
    (tmp_path / "_static/mathjax/tex.js").write_bytes(noise(FIRST_LOAD))
    (tmp_path / "index.html").write_text(SOUND)
    return tmp_path


@pytest.mark.parametrize("gate", PAGE_GATES, ids=lambda gate: gate.__name__)
def test_a_sound_site_passes(gate, site: Path):
    assert gate(site) == []


@pytest.mark.parametrize("gate", PAGE_GATES, ids=lambda gate: gate.__name__)
def test_a_missing_site_is_an_error_and_no_pass(gate, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="make site"):
        gate(tmp_path)


@pytest.mark.parametrize("file", ["_static/book.css", "_static/book.js", "_static/a.woff2"])
def test_a_page_that_loads_too_much_is_found(file: str, site: Path):
    with (site / file).open("ab") as heavy:
        heavy.write(b"/*" + noise(FIRST_LOAD) + b"*/")
    (problem,) = first_load(site)
    assert problem.startswith("index.html: ") and "allowed" in problem


def test_mathjax_without_a_formula_is_found(site: Path):
    change(site, 'class="math"', 'class="text"')
    assert first_load(site) == ["index.html: loads MathJax and has no formula"]


@pytest.mark.parametrize("waiting", ['<i class="fas fa-sun"></i>', '<span class="fa-solid fa-x"/>'])
def test_an_icon_that_waits_for_a_font_is_found(waiting: str, site: Path):
    change(site, "</article>", f"{waiting}</article>")
    (problem,) = icons(site)
    assert problem.startswith("index.html: icon fa")


@pytest.mark.parametrize("lost", [' width="2"', ' height="1"', ' loading="lazy"'])
def test_a_picture_without_a_size_or_in_a_hurry_is_found(lost: str, site: Path):
    change(site, lost, "")
    problems = pictures(site)
    assert problems and all(problem.startswith("index.html: <img") for problem in problems)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<title>Attention - Vision transformers", "<title>Attention"),
        *((f'"{key}" content="{value}"', f'"{key}" content=""') for key, value in META.items()),
        ("</head>", f"{CARD}</head>"),
        (
            "</head>",
            f'{CARD}<meta property="og:image:alt" content="x">'
            '<meta property="og:image" content="https://example.org/_images/gone.jpg"></head>',
        ),
    ],
)
def test_a_page_that_does_not_say_what_it_is_about_is_found(old: str, new: str, site: Path):
    change(site, old, new)
    problems = metadata(site)
    assert problems and all(problem.startswith("index.html: ") for problem in problems)


def test_a_page_with_an_address_and_a_picture_of_its_own_passes(site: Path):
    (site / "_images").mkdir()
    (site / "_images/card.jpg").touch()
    image = '<meta property="og:image" content="https://example.org/_images/card.jpg">'
    change(site, "</head>", f'{CARD}{image}<meta property="og:image:alt" content="x"></head>')
    assert metadata(site) == []


def noise(size: int) -> bytes:
    """Text that is longer than this many bytes even when it is compressed."""
    return random.Random(0).randbytes(size).hex().encode()


def change(site: Path, old: str, new: str) -> None:
    page = site / "index.html"
    text = page.read_text()
    assert old in text
    page.write_text(text.replace(old, new))
