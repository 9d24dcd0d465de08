"""The built site: the static gates, and what the pages say about the repository and chapters."""

import re
from pathlib import Path

import pytest
import yaml

from book.tools.address import repository, site
from book.tools.page_gates import PAGE_GATES
from book.tools.site_gates import GATES, pages
from course.claims import load

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"


@pytest.mark.parametrize("gate", [*GATES, *PAGE_GATES], ids=lambda gate: gate.__name__)
def test_gate_finds_nothing(gate):
    problems = gate(SITE)
    assert problems == [], "\n".join(problems)


def test_every_page_of_the_table_of_contents_is_built():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [chapter for part in contents["parts"] for chapter in part["chapters"]]
    sections = [section for chapter in chapters for section in chapter.get("sections", [])]
    built = {name.removesuffix(".html") for name, _ in pages(SITE)}
    assert {contents["root"], *(page["file"] for page in [*chapters, *sections])} <= built


def test_the_pages_name_the_repositorys_address_and_no_other():
    url = repository()
    notebooks = [name for name, _ in pages(SITE) if (ROOT / name).with_suffix(".ipynb").is_file()]
    assert notebooks, "at least one page is made from a notebook"
    for name, tree in pages(SITE):
        launched = [a["href"] for a in tree.select(".dropdown-launch-buttons a")]
        notebook = Path(name).with_suffix(".ipynb").as_posix()
        owned = url.removeprefix("https://github.com/")
        expected = [
            f"https://mybinder.org/v2/gh/{owned}/launch?urlpath=lab/tree/{notebook}",
            f"https://colab.research.google.com/github/{owned}/blob/launch/{notebook}",
        ]
        assert launched == (expected if url and name in notebooks else []), name
        linked = [a["href"] for a in tree.select(".dropdown-source-buttons a")]
        assert all(link.startswith(url) for link in linked) and bool(linked) <= bool(url), name
        canonical = [link["href"] for link in tree.select("link[rel=canonical]")]
        if tree.article is not None:
            assert canonical == ([site(url) + name] if url else []), name
    assert (SITE / "sitemap.xml").exists() == (SITE / "robots.txt").exists() == bool(url)


@pytest.mark.parametrize("name", ["index.html", "book/how_to_read.html"])
def test_a_rocket_is_promised_where_there_is_one(name):
    (tree,) = (tree for page, tree in pages(SITE) if page == name)
    assert ("rocket" in tree.article.get_text()) == bool(repository())


def test_what_github_pages_looks_for_is_there():
    assert (SITE / ".nojekyll").is_file() and (SITE / "404.html").is_file()


def test_of_mathjax_s_bundles_the_site_has_the_one_that_its_pages_load():
    assert [file.name for file in SITE.glob("_static/mathjax/*.js")] == ["tex-chtml.js"]


def test_a_chapter_its_figures_and_its_equations_bear_the_number_of_its_file():
    chapters = [
        (n, tree) for n, tree in pages(SITE) if re.fullmatch(r"book/(?!00)\d\d_\w+\.html", n)
    ]
    assert chapters
    for name, tree in chapters:
        number = int(Path(name).name[:2])
        assert tree.select_one("article h1").get_text().startswith(f"{number}. "), name
        numbered = tree.select("figcaption .caption-number, .math .eqno")
        assert numbered, f"{name} has a numbered figure or equation"
        for label in numbered:
            assert re.search(rf"\b{number}\.\d", label.get_text()), f"{name}: {label}"


def test_the_first_page_is_the_site_s_own_and_has_a_tile_for_every_claim():
    (first,) = (tree for name, tree in pages(SITE) if name == "index.html")
    tiles = [tile.get_text().split()[0] for tile in first.select(".claim-tile")]
    assert tiles == list(load().claims)
