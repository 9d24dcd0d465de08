"""Each gate for what a page costs and says catches its fault."""

from pathlib import Path

import pytest

from book.tools.page_gates import FIRST_LOAD, first_load, icons, metadata, pictures
from tests.site.conftest import META, VIEWPORT, noise

CARD = '<link rel="canonical" href="https://example.org/"><meta property="og:url" content="x">'


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
def test_an_image_without_a_size_or_in_a_hurry_is_found(lost: str, site: Path):
    change(site, lost, "")
    problems = pictures(site)
    assert problems and all(problem.startswith("index.html: <img") for problem in problems)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<title>Attention - Vision transformers", "<title>Attention"),
        *((f'"{key}" content="{value}"', f'"{key}" content=""') for key, value in META.items()),
        (VIEWPORT, ""),
        (VIEWPORT, VIEWPORT * 2),
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


def test_a_page_with_an_address_and_an_image_of_its_own_passes(site: Path):
    (site / "_images").mkdir()
    (site / "_images/card.jpg").touch()
    image = '<meta property="og:image" content="https://example.org/_images/card.jpg">'
    change(site, "</head>", f'{CARD}{image}<meta property="og:image:alt" content="x"></head>')
    assert metadata(site) == []


def change(site: Path, old: str, new: str) -> None:
    page = site / "index.html"
    text = page.read_text()
    assert old in text
    page.write_text(text.replace(old, new))
