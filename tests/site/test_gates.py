"""Each gate catches the fault that it is there for, and lets a sound page pass."""

from pathlib import Path

import pytest

from book.tools import gates
from book.tools.gates import FIRST_LOAD, GATES, HEAVIEST
from tests.site.conftest import GOOD_ALT, META, VIEWPORT, change, noise, plant

CARD = '<link rel="canonical" href="https://example.org/"><meta property="og:url" content="x">'
CARD_OF = f'{CARD}<meta property="og:image:alt" content="x"><meta property="og:image" content="https://example.org/_images/{{}}.jpg">'


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
def test_a_sound_site_passes_and_a_missing_one_is_an_error(gate, site: Path):
    assert gate(site) == []
    with pytest.raises(FileNotFoundError, match="make site"):
        gate(site / "_static")


@pytest.mark.parametrize("file, text", [
    ("book.css", "@font-face { src: url(https://fonts.example.org/a.woff2) }"),
    ("book.css", '@import "//example.org/a.css";'),
    ("book.js", 'import a from "https://cdn.example.org/a.js";'),
    ("book.js", 'const a = await fetch("https://example.org/a.json");'),
])  # fmt: skip
def test_a_foreign_url_in_a_shared_file_is_found(file: str, text: str, site: Path):
    for encoding in ("utf-8", "utf-16"):  # the latter with its mark, as models of pages have it
        (site / "_static" / file).write_text(text, encoding=encoding)
        (problem,) = gates.foreign_urls(site)
        assert problem.startswith(f"_static/{file}: fetches ")


@pytest.mark.parametrize("gate, planted, fault", [
    ("foreign_urls", '<script src="https://cdn.example.org/a.js"></script>', "fetches "),
    ("foreign_urls", '<script src="//cdn.example.org/a.js"></script>', "fetches "),
    ("foreign_urls", '<link rel="stylesheet" href="https://cdn.example.org/a.css">', "fetches "),
    ("foreign_urls", f'<img src="logo.svg" srcset="logo.svg 1x, https://example.org/a.png 2x" {GOOD_ALT}>', "fetches "),
    ("foreign_urls", '<object data="https://example.org/a.pdf"></object>', "fetches "),
    ("foreign_urls", '<video poster="https://example.org/a.png"></video>', "fetches "),
    ("foreign_urls", '<svg aria-hidden="true"><use href="https://example.org/a.svg#x"/></svg>', "fetches "),
    ("foreign_urls", "<p style=\"background: url('https://example.org/a.png')\">text</p>", "fetches "),
    ("foreign_urls", '<style>@import "https://example.org/a.css";</style>', "fetches "),
    ("foreign_urls", '<script>import("https://cdn.example.org/a.js")</script>', "fetches "),
    ("alt_texts", '<img src="logo.svg">', "no alt text"),
    ("alt_texts", '<img src="logo.svg" alt="">', "does not say"),
    ("alt_texts", '<img src="logo.svg" alt="A curve">', "does not say"),
    ("alt_texts", '<img src="logo.svg" alt="_images/attention_over_patches.png">', "does not say"),
    ("alt_texts", '<img src="logo.svg" alt="attention-over-patches">', "does not say"),
    ("alt_texts", '<a href="#top"><img src="logo.svg" alt=""></a>', "does not say"),
    ("alt_texts", '<svg role="img"></svg>', "does not say"),
    ("broken_links", '<a href="gone.html">there</a>', "leads nowhere"),
    ("broken_links", '<a href="404.html#gone">there</a>', "an anchor that is not there"),
    ("broken_links", '<a href="#gone">there</a>', "an anchor that is not there"),
    ("broken_links", f'<img src="gone.png" {GOOD_ALT}>', "leads nowhere"),
    ("heavy_pages", f"<p>{'x' * HEAVIEST}</p>", "allowed"),
    ("formulas", '<span class="math">\\(x\\)</span>', "in TeX"),
    ("formulas", '<span class="math"><math><mi>x</mi></math>\\xi</span>', "in TeX"),
    ("formulas", '<script src="_static/mathjax/tex.js"></script>', "loads "),
    ("icons", '<i class="fas fa-sun"></i>', "icon fa"),
    ("icons", '<span class="fa-solid fa-x"/>', "icon fa"),
], ids=range(27))  # fmt: skip
def test_a_fault_that_is_planted_is_found(gate: str, planted: str, fault: str, site: Path):
    plant(site, planted)
    (problem,) = getattr(gates, gate)(site)
    assert problem.startswith("index.html: ") and fault in problem


def test_a_page_that_is_heavy_by_its_images_is_found_unless_they_are_shared(site: Path):
    (site / "big.png").write_bytes(b"x" * HEAVIEST)
    plant(site, f'<img src="big.png" {GOOD_ALT}>')
    (problem,) = gates.heavy_pages(site)
    assert problem.startswith("index.html: ")
    plant(site, f'<img src="big.png" {GOOD_ALT}>', page="404.html")
    assert gates.heavy_pages(site) == []


@pytest.mark.parametrize("file", ["_static/book.css", "_static/book.js", "_static/a.woff2"])
def test_a_page_that_loads_too_much_is_found(file: str, site: Path):
    with (site / file).open("ab") as heavy:
        heavy.write(b"/*" + noise(FIRST_LOAD) + b"*/")
    (problem,) = gates.first_load(site)
    assert problem.startswith("index.html: ") and "allowed" in problem


@pytest.mark.parametrize("gate, old, new", [
    *(("images", lost, "") for lost in (' width="2"', ' height="1"', ' loading="lazy"')),
    ("metadata", "<title>Attention - Vision transformers", "<title>Attention"),
    *(("metadata", f'"{key}" content="{value}"', f'"{key}" content=""') for key, value in META.items()),
    ("metadata", VIEWPORT, ""),
    ("metadata", VIEWPORT, VIEWPORT * 2),
    ("metadata", "</head>", f"{CARD}</head>"),
    ("metadata", "</head>", f"{CARD_OF.format('gone')}</head>"),
])  # fmt: skip
def test_what_an_image_or_a_page_does_not_say_is_found(gate: str, old: str, new: str, site: Path):
    change(site, old, new)
    problems = getattr(gates, gate)(site)
    assert problems and all(problem.startswith("index.html: ") for problem in problems)

    if "_images" in new:  # an image of its own, once it is there
        (site / "_images").mkdir()
        (site / "_images/gone.jpg").touch()
        assert gates.metadata(site) == []
