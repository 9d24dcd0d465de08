"""What can be checked on the built pages without a browser; each gate lists the problems it finds.

A problem is one line that begins with the page's name. Pages are read as the browser gets them:
``GATES`` ask whether a page is whole and asks nothing of others, ``PAGE_GATES`` what it costs its
reader and what it says of itself.
"""

import codecs
import gzip
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

HEAVIEST = 1_500_000  # bytes of a page and of what no other page uses
FIRST_LOAD = 500_000  # bytes, compressed, of a page and its styles, scripts and fonts
SHORTEST_ALT = 15  # characters: fewer cannot say what a figure shows
TITLE = "vision transformer"  # what every page's title tells those who find it
SUMMARY = range(40, 301)  # characters of a description

# Where a page names something that the browser fetches by itself. Links are followed by readers.
LOADS = {
    "src": ["audio", "embed", "iframe", "img", "input", "script", "source", "track", "video"],
    "srcset": ["img", "source"],
    "poster": ["video"],
    "data": ["object"],
    "href": ["link", "image", "use"],
    "xlink:href": ["image", "use"],
}
LINKS_THAT_LOAD = {"stylesheet", "icon", "apple-touch-icon", "manifest", "modulepreload", "preload",
                   "preconnect", "prefetch", "dns-prefetch"}  # fmt: skip
IN_CSS = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")
IN_SCRIPT = re.compile(r"""(?:\bfrom|\bimport|\bimport\(|\bimportScripts\(|\bfetch\(|\.src\s*=)"""
                       r"""\s*['"`]((?:https?:)?//[^'"`]+)""")  # fmt: skip
ICON = re.compile(r"fa[srb]?|fa-(solid|regular|brands)")


def text_of(file: Path) -> str:
    """A file's text: models of pages are in UTF-16, and begin with its mark; all else in UTF-8."""
    content = file.read_bytes()
    return content.decode("utf-16" if content.startswith(codecs.BOM_UTF16_LE) else "utf-8")


@cache  # every gate reads every page
def parse(html: str) -> BeautifulSoup:
    """A page's tree."""
    return BeautifulSoup(html, "html.parser")


def pages(site: Path) -> Iterator[tuple[str, BeautifulSoup]]:
    """The name and the tree of every page."""
    if not (site / "index.html").is_file():
        raise FileNotFoundError(f"no site in {site}: build it with `make site`")
    for page in sorted(site.rglob("*.html")):
        if "_static" not in page.relative_to(site).parts:
            yield page.relative_to(site).as_posix(), parse(page.read_text(encoding="utf-8"))


def loaded(tree: BeautifulSoup) -> Iterator[str]:
    """Addresses that the browser fetches by itself when it shows a page."""
    for attribute, names in LOADS.items():
        for tag in tree.find_all(names, attrs={attribute: True}):
            if tag.name == "link" and not LINKS_THAT_LOAD.intersection(tag.get("rel", [])):
                continue
            if attribute == "srcset":
                yield from (part.split()[0] for part in tag[attribute].split(",") if part.strip())
            else:
                yield tag[attribute]
    for tag in tree.find_all(style=True):
        yield from in_css(tag["style"])
    for tag in tree.find_all("style"):
        yield from in_css(tag.get_text())
    for tag in tree.find_all("script", src=False):
        yield from IN_SCRIPT.findall(tag.get_text())


def in_css(text: str) -> list[str]:
    """Addresses in a style sheet."""
    return [url or imported for url, imported in IN_CSS.findall(text)]


def file_of(page: Path, url: str) -> Path | None:
    """The file of this site that an address of a page names; none of another site."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return None
    return (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()


def foreign_urls(site: Path) -> list[str]:
    """Whatever a page, a style sheet or a script would fetch from another host."""
    found = [(name, url) for name, tree in pages(site) for url in loaded(tree)]
    for suffix, addresses in ((".css", in_css), (".js", IN_SCRIPT.findall)):
        for path in site.rglob(f"*{suffix}"):
            name = path.relative_to(site).as_posix()
            found += [(name, url) for url in addresses(text_of(path))]
    return [
        f"{name}: fetches {url}"
        for name, url in found
        if urlsplit(url).netloc and urlsplit(url).scheme in ("", "http", "https")
    ]


def alt_texts(site: Path) -> list[str]:
    """Images without a text that says what they show."""
    return [
        f"{name}: {str(image)[:80]}: {fault}"
        for name, tree in pages(site)
        for image in tree.find_all(["img", "svg"])
        if (fault := alt_fault(image))
    ]


def alt_fault(image: Tag) -> str:
    """What is wrong with an image's text, or nothing."""
    if image.name == "svg":
        text = image.get("aria-label", "") or (image.title.get_text() if image.title else "")
        if image.get("aria-hidden") == "true":
            return ""
    elif "alt" not in image.attrs:
        return "no alt text"
    else:
        text = image["alt"].strip()
    beside = image.find_parent(["a", "button"])
    if not text and beside is not None and beside.get_text(strip=True):
        return ""  # an ornament of a link or button that says in words what it is
    if image.find_parent("article") is None:
        return "" if text else "empty alt text"
    if re.search(r"\.(png|jpe?g|svg|gif|webp)$|^[\w/.-]+$", text) or len(text) < SHORTEST_ALT:
        return f"alt text {text!r} does not say what is shown"
    return ""


def broken_links(site: Path) -> list[str]:
    """Links to files and anchors of this site that are not there."""
    anchors = {
        (site / name).resolve(): {tag["id"] for tag in tree.find_all(id=True)}
        for name, tree in pages(site)
    }
    problems = []
    for name, tree in pages(site):
        for url in [*(tag["href"] for tag in tree.find_all("a", href=True)), *loaded(tree)]:
            target, anchor = file_of(site / name, url), unquote(urlsplit(url).fragment)
            if target is None or url == "#":
                continue
            if not target.is_file():
                problems.append(f"{name}: {url} leads nowhere")
            elif anchor and anchor not in anchors.get(target, {anchor}):
                problems.append(f"{name}: {url} names an anchor that is not there")
    return problems


def heavy_pages(site: Path) -> list[str]:
    """Pages that weigh too much: their own bytes and those of files that they alone load.

    A figure's narrow form is not counted: it is loaded in place of the other.
    """
    users: dict[Path, set[str]] = {}
    for name, tree in pages(site):
        for url in loaded(tree):
            file = file_of(site / name, url)
            mine = file and file.is_file() and "_static" not in file.parts
            if mine and not file.stem.endswith("-narrow"):
                users.setdefault(file, set()).add(name)
    problems = []
    for name, _ in pages(site):
        own = [site / name, *(file for file, names in users.items() if names == {name})]
        weight = sum(file.stat().st_size for file in own)
        if weight > HEAVIEST:
            problems.append(f"{name}: {weight:,} bytes, at most {HEAVIEST:,} are allowed")
    return problems


def first_load(site: Path) -> list[str]:
    """Pages that cost too much before they can be read, MathJax apart, which formulas need."""
    problems = []
    for name, tree in pages(site):
        page = site / name
        files = set(filter(None, (file_of(page, url) for url in loaded(tree))))
        files = {page, *(file for file in files if file.suffix in (".css", ".js"))}
        files |= {font for sheet in files if sheet.suffix == ".css" for font in fonts(sheet)}
        mathjax = {file for file in files if "mathjax" in file.parts}
        weight = sum(compressed(file) for file in files - mathjax if file.is_file())
        if weight > FIRST_LOAD:
            problems.append(f"{name}: {weight:,} bytes at first, at most {FIRST_LOAD:,} allowed")
        if mathjax and tree.select_one(".math") is None:
            problems.append(f"{name}: loads MathJax and has no formula")
    return problems


@cache
def fonts(sheet: Path) -> frozenset[Path]:
    """The fonts that a style sheet names."""
    urls = in_css(sheet.read_text(encoding="utf-8")) if sheet.is_file() else []
    files = (sheet.parent.joinpath(urlsplit(url).path).resolve() for url in urls)
    return frozenset(f for f in files if f.suffix in (".woff", ".woff2", ".ttf", ".otf"))


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


def images(site: Path) -> list[str]:
    """Images in the text that push it about when they arrive, or arrive before it."""
    problems = []
    for name, tree in pages(site):
        for number, image in enumerate(tree.select("article img")):
            if image["src"].endswith(".svg"):
                continue
            if not (image.get("width") and image.get("height")):
                problems.append(f"{name}: {str(image)[:80]}: no width and height")
            waits = image.get("loading") == "lazy" or image["src"].startswith("data:")
            if number and not waits:
                problems.append(f"{name}: {str(image)[:80]}: below the first screen, not lazy")
    return problems


def metadata(site: Path) -> list[str]:
    """Pages that do not say what they are about where a link to them is shown."""
    linked = ((name, tree) for name, tree in pages(site) if name != "404.html")
    return [f"{name}: {fault}" for name, tree in linked for fault in metadata_faults(tree, site)]


def metadata_faults(tree: BeautifulSoup, site: Path) -> Iterator[str]:
    """What is wrong with a page's metadata."""
    tags = tree.find_all("meta")
    said = {tag.get("property") or tag.get("name"): tag.get("content", "") for tag in tags}
    title = tree.title.get_text() if tree.title else ""
    if TITLE not in title.casefold():
        yield f"title {title!r} does not say {TITLE!r}"
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
    yield from (f"no {key}" for key in sorted(wanted) if not said.get(key))


GATES: list[Callable[[Path], list[str]]] = [foreign_urls, alt_texts, broken_links, heavy_pages]
PAGE_GATES: list[Callable[[Path], list[str]]] = [first_load, icons, images, metadata]
