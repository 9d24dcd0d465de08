"""What a page costs its reader, and what it says of itself; gates like those of ``site_gates``."""

import gzip
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

from book.tools.site_gates import in_css, loaded, pages

FIRST_LOAD = 500_000  # bytes, compressed, of a page and its styles, scripts and fonts
ABOUT = "vision transformer"  # what every page's title tells those who find it
SUMMARY = range(40, 301)  # characters of a description
ICON = re.compile(r"fa[srb]?|fa-(solid|regular|brands)")


def first_load(site: Path) -> list[str]:
    """Pages that cost too much before they can be read, MathJax apart, which formulas need."""
    problems = []
    for name, tree in pages(site):
        page = site / name
        files = {page, *local(page, tree)}
        files |= {font for sheet in files if sheet.suffix == ".css" for font in fonts(sheet)}
        mathjax = {file for file in files if "mathjax" in file.parts}
        weight = sum(compressed(file) for file in files - mathjax)
        if weight > FIRST_LOAD:
            problems.append(f"{name}: {weight:,} bytes at first, at most {FIRST_LOAD:,} allowed")
        if mathjax and tree.select_one(".math") is None:
            problems.append(f"{name}: loads MathJax and has no formula")
    return problems


def local(page: Path, tree: BeautifulSoup) -> Iterator[Path]:
    """The styles and scripts of this site that a page loads."""
    for url in loaded(tree):
        file = (page.parent / unquote(urlsplit(url).path)).resolve()
        if not urlsplit(url).netloc and file.suffix in (".css", ".js") and file.is_file():
            yield file


def fonts(sheet: Path) -> Iterator[Path]:
    """The fonts that a style sheet names and that are there."""
    for url in in_css(sheet.read_text(encoding="utf-8")):
        file = (sheet.parent / urlsplit(url).path).resolve()
        if file.suffix in (".woff", ".woff2", ".ttf", ".otf") and file.is_file():
            yield file


@cache
def compressed(file: Path) -> int:
    """What a server sends of a file."""
    return len(gzip.compress(file.read_bytes(), compresslevel=6))


def icons(site: Path) -> list[str]:
    """Icons that wait for a font or a script that the pages do not load."""
    return [
        f"{name}: icon {' '.join(tag['class'])} is not drawn"
        for name, tree in pages(site)
        for tag in tree.select("i[class], span[class]")
        if any(ICON.fullmatch(word) for word in tag["class"])
    ]


def pictures(site: Path) -> list[str]:
    """Images in the text that push it about when they arrive, or arrive before it."""
    problems = []
    for name, tree in pages(site):
        for number, picture in enumerate(tree.select("article img")):
            if picture["src"].endswith(".svg"):
                continue
            if not (picture.get("width") and picture.get("height")):
                problems.append(f"{name}: {str(picture)[:80]}: no width and height")
            waits = picture.get("loading") == "lazy" or picture["src"].startswith("data:")
            if number and not waits:
                problems.append(f"{name}: {str(picture)[:80]}: below the first screen, not lazy")
    return problems


def metadata(site: Path) -> list[str]:
    """Pages that do not say what they are about where a link to them is shown."""
    linked = ((name, tree) for name, tree in pages(site) if name != "404.html")
    return [f"{name}: {fault}" for name, tree in linked for fault in faults(tree, site)]


def faults(tree: BeautifulSoup, site: Path) -> Iterator[str]:
    """What is wrong with a page's metadata."""
    said = {
        tag.get("property") or tag.get("name"): tag.get("content", "")
        for tag in tree.find_all("meta")
    }
    title = tree.title.get_text() if tree.title else ""
    if ABOUT not in title.casefold():
        yield f"title {title!r} does not say {ABOUT!r}"
    if len(said.get("description", "")) not in SUMMARY:
        yield f"description {said.get('description')!r} is too short or too long"
    viewports = len(tree.find_all("meta", attrs={"name": "viewport"}))
    if viewports != 1:
        yield f"{viewports} viewports"
    wanted = {"og:type", "og:title", "og:description", "og:site_name", "twitter:card"}
    if tree.find("link", rel="canonical"):  # the site knows where it is published
        wanted |= {"og:url", "og:image", "og:image:alt"}
        card = said.get("og:image", "")
        if not (urlsplit(card).netloc and (site / "_images" / card.rpartition("/")[2]).is_file()):
            yield f"og:image {card!r} is not there"
    for key in sorted(wanted - {key for key, value in said.items() if value}):
        yield f"no {key}"


PAGE_GATES: list[Callable[[Path], list[str]]] = [first_load, icons, pictures, metadata]
