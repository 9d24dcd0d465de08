"""The built site: the static gates, what pages say of repository and chapters, and pages of the packages."""

import base64
import gzip
import importlib
import io
import re
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

from book._ext.fonts import LEGAL
from book.tools.address import ROOT, SITE, repository, site
from book.tools.edition.contents import pages as pages_of
from book.tools.edition.tree import load as load_yaml
from book.tools.gates import GATES
from course.claims import load


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
def test_gate_finds_nothing(gate):
    problems = gate(SITE)
    assert problems == [], "\n".join(problems)


def test_every_page_is_built_and_names_the_repositorys_address_and_no_other(trees):
    assert {f"{name}.html" for name in pages_of(load_yaml("_toc.yml"))} <= set(trees)
    url = repository()
    notebooks = [name for name in trees if (ROOT / name).with_suffix(".ipynb").is_file()]
    assert notebooks, "at least one page is made from a notebook"
    owned = url.removeprefix("https://github.com/")
    for name, tree in trees.items():
        notebook = Path(name).with_suffix(".ipynb").as_posix()
        expected = [
            f"https://mybinder.org/v2/gh/{owned}/environment?urlpath=git-pull",
            f"https://colab.research.google.com/github/{owned}/blob/launch/{notebook}",
        ]
        launched = [a["href"].split("%")[0] for a in tree.select(".dropdown-launch-buttons a")]
        assert launched == (expected if url and name in notebooks else []), name
        linked = [a["href"] for a in tree.select(".dropdown-source-buttons a")]
        assert all(link.startswith(url) for link in linked) and bool(linked) <= bool(url), name
        canonical = [link["href"] for link in tree.select("link[rel=canonical]")]
        if tree.article is not None:
            assert canonical == ([site(url) + name] if url else []), name
    for name in ("index.html", "book/how_to_read.html"):
        assert ("rocket" in trees[name].article.get_text()) == bool(url), name
    assert (SITE / "sitemap.xml").exists() == (SITE / "robots.txt").exists() == bool(url)
    assert (SITE / ".nojekyll").is_file() and (SITE / "404.html").is_file()
    assert not [*SITE.glob("**/*mathjax*")]
    tiles = [tile.get_text().split(":")[0] for tile in trees["index.html"].select(".claim-tile")]
    assert sorted(tiles) == sorted(load().claims) and "206 " in trees["index.html"].get_text()


def test_pages_and_what_they_load_take_40_megabytes_and_downloads_are_asked_for(trees):
    links = ((SITE / n, a["href"]) for n, t in trees.items() for a in t.select("a[download][href]"))
    taken = {(page.parent / link).resolve() for page, link in links}
    apart = {SITE / folder for folder in ("_sources", "_static/take", "_static/large", "wheels")}
    files = [f for f in SITE.rglob("*") if f.is_file() and not apart & {*f.parents}]
    data = {".json", ".csv", ".bib"}  # to take, too
    assert sum(f.stat().st_size for f in files if f not in taken and f.suffix not in data) < 40e6


def test_the_type_of_the_pages_comes_with_them_and_has_no_name_that_is_reserved():
    sheet = (SITE / "_static/fonts.css").read_text("utf-8")
    found = re.findall(r"base64,([^)]+)", sheet)
    fonts = [TTFont(io.BytesIO(base64.b64decode(text))) for text in found]
    assert len(fonts) == 4 and "SIL OPEN FONT LICENSE" in sheet
    for font in fonts:
        assert {*map(ord, "AZaz09.,–“”")} <= font.getBestCmap().keys()
        assert {name.nameID for name in font["name"].names} <= {*LEGAL}


def test_no_two_pages_describe_themselves_alike_and_none_by_its_minutes(trees):
    metas = {n: tree.find("meta", attrs={"name": "description"}) for n, tree in trees.items()}
    described = {name: meta["content"] for name, meta in metas.items() if meta}
    alike = [name for name, text in described.items() if [*described.values()].count(text) > 1]
    assert len(described) > 60 and alike == []
    assert [name for name, text in described.items() if re.search(r"\d+ min\b", text)] == []


def test_a_chapter_its_figures_and_its_equations_bear_the_number_of_its_file(trees):
    chapters = {n: tree for n, tree in trees.items() if re.match(r"book/(?!00)\d\d_", n)}
    assert chapters
    for name, tree in chapters.items():
        number = int(Path(name).name[:2])
        assert tree.select_one("article h1").get_text().startswith(f"{number}. "), name
        numbered = tree.select("figcaption .caption-number, .math .eqno")
        assert numbered, f"{name} has a numbered figure or equation"
        for label in numbered:
            assert re.search(rf"\b{number}\.\d", label.get_text()), f"{name}: {label}"


HTML = [path.read_text("utf-8") for path in SITE.glob("book/api/*.html")]
DESCRIBED = {*re.findall(r'<dt class="sig[^"]*" id="[\w.]+\.(\w+)"', "".join(HTML))}
LISTS = "".join(path.read_text("utf-8") for path in ROOT.glob("book/api/*.md"))
LISTED = re.findall(r"automodule:: ([\w.]+)", LISTS)
PACKAGES = ["minivit", *(f"vitlab.{p.parent.name}" for p in ROOT.glob("vitlab/*/__init__.py"))]
HEAVIEST = 40_000  # bytes, compressed; on one page all would be a hundred thousand


def test_no_page_is_heavy_and_every_module_and_package_is_listed_once():
    assert len(HTML) > 1
    assert max(len(gzip.compress(html.encode())) for html in HTML) < HEAVIEST
    modules = {f"minivit.{path.stem}" for path in ROOT.glob("minivit/*.py")} - {"minivit.__init__"}
    assert modules <= set(LISTED)
    listed = {".".join(name.split(".")[:2]) for name in LISTED if "vitlab." in name}
    assert set(PACKAGES) - {"minivit"} == listed
    assert len(LISTED) == len(set(LISTED))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_described(package: str):
    """Those that a package lists or shows, of what is defined in it."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [n for n in dir(module) if not n.startswith("_")])
    homes = {name: getattr(getattr(module, name), "__module__", "") for name in names}
    own = {name for name, home in homes.items() if f"{home}.".startswith(f"{package}.")}
    if package == "vitlab.commands":
        own = {"main"}  # the others are what the command line reads, and its help says
    assert own <= DESCRIBED
