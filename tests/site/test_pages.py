"""What becomes of a page when it is made light, and what it says of itself."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from sphinx.application import Sphinx

from book._ext.dark import dark
from book._ext.figures import form
from book._ext.formulas import mathml
from book._ext.light_pages import icon, lighten

SCRIPTS = "".join(
    f'<script defer src="../_static/{name}?v=1"></script>\n'
    for name in ("scripts/fontawesome.js", "searchtools.js", "book.js")
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    Image.new("RGB", (7, 5)).save(tmp_path / "a.png")
    return tmp_path / "page.html"


def test_only_scripts_that_the_page_uses_stay(page: Path):
    def stay(html: str, at: Path) -> list[str]:
        light = lighten(SCRIPTS + html, at)
        return [name for name in ("fontawesome", "search", "book") if name in light]

    assert stay("", page) == ["book"]
    assert stay("", page.with_name("search.html")) == ["search", "book"]


def test_a_formula_becomes_mathml_that_keeps_its_tex_and_one_in_no_tex_ends_the_build():
    tex = r"\lVert k \rVert \cos x = \log(-x)"
    (found,) = mathml([("[", tex)])
    assert found.startswith('<math display="block"') and f'x-tex">{tex}</annotation>' in found
    assert 'stretchy="true"' not in found
    assert re.findall(r'lspace="(.*?)" rspace="(.*?)">(\w+)', found) == [
        ("0.167em", "0.167em", "cos"), ("0", "0", "log")
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"cannot set: \\frac\{"):
        mathml([("(", "x"), ("(", r"\frac{")])


def test_icons_are_drawn_into_the_page_and_of_three_viewports_the_first_stays(page: Path):
    html = '<i class="theme-switch fa-solid fa-sun      fa-lg" data-mode="light" title="L"></i>'
    light = lighten(html + '<span class="fa-solid fa-bars"></span>', page)
    fold = '<summary aria-label="Toggle hidden content"><p>Code</p>'
    assert lighten(fold, page) == "<summary><p>Code</p>", "its name is what it shows"
    assert light.startswith('<svg class="icon theme-switch fa-sun fa-lg" data-mode="light" viewBox')
    assert light.count("<path d=") == 2 and "<i" not in light and "<span" not in light
    with pytest.raises(ValueError, match="no icon 'unicorn'"):
        icon("unicorn", "fas")
    kept = "<pre>9 %</pre><code>9 %</code>"
    assert lighten(f"<article>9 % {kept}", page) == f"<article>9\xa0% {kept}"
    one = '<meta name="viewport" content="width=device-width" />'
    assert lighten(f"<head>{one}\n{one}{one}</head>", page) == f"<head>{one}</head>"


def test_images_get_their_size_all_but_the_first_wait_and_a_light_page_stays(page: Path):
    stored = io.BytesIO()
    Image.new("RGB", (3, 2), "white").save(stored, "webp")
    frame = f"data:image/webp;base64,{base64.b64encode(stored.getvalue()).decode()}"
    html = f'<article><img src="a.png"><img alt="b" src="a.png"><img src="{frame}"></article>'
    first, second, third = lighten(html, page).split("<img ")[1:]
    assert first == 'width="7" height="5" src="a.webp">'
    assert second == 'width="7" height="5" loading="lazy" alt="b" src="a.webp">'
    assert third.startswith('data-chart width="3" height="2" loading="lazy" src="page-')
    (kept,) = page.parent.glob("page-*.webp")
    assert kept.name in third and kept.read_bytes() == stored.getvalue()
    # A phone gets the stacked form of a figure that has one.
    Image.new("RGB", (4, 9)).save(page.with_name("a-narrow.webp"))
    light = lighten('<article><img src="a.png"></article>', page)
    assert light == (
        '<article><picture><source media="(max-width: 40rem)" srcset="a-narrow.webp" '
        'width="4" height="9"><img width="7" height="5" src="a.webp"></picture></article>'
    )
    assert lighten(light, page) == light, "it changes no further"
    # Over what a notebook drew and is no chart lies a layer for the dark; of a slider, over each.
    drawn = page.with_name(f"{64 * 'a'}.png")
    paper = Image.new("RGB", (80, 60), "white")
    photograph = Image.linear_gradient("L").point(lambda v: 0.8 * v).resize((40, 40))
    paper.paste(photograph, (20, 10))
    for name in (drawn, form(drawn, "narrow"), stored := io.BytesIO()):
        paper.save(name, "webp" if name is stored else None)
    frame = f"data:image/webp;base64,{base64.b64encode(stored.getvalue()).decode()}"
    html = f'<article><img alt="A" src="{drawn.name}"><img src="{frame}" hidden style="display:none"></article>'
    ours = BeautifulSoup(lighten(html, page), "html.parser")
    assert lighten(str(ours), page) == str(ours)
    (by_day, by_night), (shut, over) = (span.select("img") for span in ours.select(".layers"))
    assert by_day.previous["srcset"] == f"{drawn.stem}-narrow.webp" and by_day["alt"] == "A"
    assert by_night.previous["srcset"] == f"{drawn.stem}-narrow-dark.webp" and not by_night["alt"]
    assert not by_day.get("loading") and by_night["loading"] == shut["loading"] == "lazy"
    assert by_night["class"] == over["class"] == ["only-dark"]
    assert shut.has_attr("hidden") and over.attrs.keys() & {"hidden", "style"} == set()
    for tag in (by_night, by_night.previous, over):
        layer = Image.open(page.with_name(tag.get("src") or tag["srcset"])).convert("RGBA")
        assert layer.getpixel((3, 3)) == (18, 18, 18, 255) and layer.getpixel((40, 30))[3] == 0
    Image.effect_noise((400, 400), 99).save(page.with_name("heavy.png"))
    light = lighten('<article><img src="heavy.png"></article>', page)
    assert 'src="heavy.webp"' in light and Image.open(page.with_name("heavy.webp")).width == 400
    html = f'{SCRIPTS}<i class="fas fa-file"></i><article><img src="a.png"><img src="a.png">'
    light = lighten(html, page)
    assert lighten(light, page) == light


def test_by_night_lines_bars_and_digits_on_paper_turn_about_and_pictures_stay():
    paper = np.full((200, 400, 3), 255, np.uint8)
    noise = np.random.default_rng(0).integers(0, 200, (60, 60, 3))
    paper[20:80, 20:80] = noise  # a photograph
    paper[20:80, 100:160] = noise[..., :1]  # a grey one
    paper[20:22, 200:380] = 0  # a line
    paper[100:180, 20:40], paper[130:180, 40:60] = (0, 114, 178), (213, 94, 0)  # bars
    night = np.asarray(dark(Image.fromarray(paper))).astype(int)
    assert (night[[0, 90, 199], 5] == (18, 18, 18, 255)).all() and (night[20, 300] > 200).all()
    assert (night[21:79, [*range(21, 79), *range(101, 159)], 3] == 0).all(), "seen through"
    blue, orange = night[150, 30], night[150, 50]
    assert blue[:3].argmax() == 2 and orange[:3].argmax() == 0, "bars keep their hue"
    assert blue[:3].sum() > paper[150, 30].sum(), "and are light"
    # A short bar of a film, whose edges are blended over more than one pixel.
    film = np.full((60, 80, 3), 255, np.uint8)
    film[20:36, 20:70], film[22:34, 22:68] = (90, 160, 205), (0, 114, 178)
    assert (np.asarray(dark(Image.fromarray(film)))[24:32, 24:66, 3] == 255).all()
    # A digit is ink on the paper, and no grey picture beside it is a photograph.
    paper[100:180, 200:216] = paper[164:180, 200:260] = 0
    night = np.asarray(dark(Image.fromarray(paper))).astype(int)
    assert (night[[120, 170], [208, 250]] > 200).all()
    assert (night[21:79, 21:79, 3] == 0).all() and (night[..., 3][20:80, 100:160] == 255).all()


PAGES = {
    "index": "Book\n====\n\n.. toctree::\n\n   page\n",
    "page": "Page\n====\n\nHow can every patch of an image ask all the others for what it needs?\n"
    '\n.. image:: a.png\n   :alt: Two "curves" & a line.\n',
}


@pytest.mark.parametrize("base", ["", "https://example.org/book/"])
def test_a_page_shows_its_first_figure_once_the_site_has_an_address(base: str, tmp_path: Path):
    for name, text in PAGES.items():
        (tmp_path / f"{name}.rst").write_text(text)
    Image.new("RGB", (30, 20)).save(tmp_path / "a.png")
    out = tmp_path / "out"
    settings = {"extensions": ["book._ext.pages"], "html_theme": "basic",
                "html_title": "Vision transformers", "html_baseurl": base}  # fmt: skip
    Sphinx(tmp_path, None, out, tmp_path / "trees", "html", settings, status=None).build()

    def tree(name: str) -> BeautifulSoup:
        return BeautifulSoup((out / f"{name}.html").read_text(), "html.parser")

    def said(name: str) -> dict[str, str]:
        tags = tree(name)("meta", content=True)
        return {tag.get("property") or tag.get("name"): tag["content"] for tag in tags}

    assert tree("index").title.get_text() == "Vision transformers"
    assert tree("page").title.get_text().endswith("Vision transformers")
    page = said("page")
    assert page["description"].startswith("How can every patch")
    assert ("og:image" in page) == ("og:url" in page) == bool(base)
    if base:
        assert page["og:image"] == f"{base}_images/card-a.jpg"
        assert page["og:image:alt"] == 'Two "curves" & a line.'
        assert Image.open(out / "_images/card-a.jpg").size == (1200, 630)
        assert "og:image" not in said("index")  # nothing in this book lends it one
    assert said("search")["og:title"]
