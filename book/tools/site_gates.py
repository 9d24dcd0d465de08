"""What can be checked on the built pages without a browser; each gate lists the problems it finds.

A problem is one line that begins with the page's name. Pages are read as the browser gets them.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from book.tools.text import text_of

HEAVIEST = 1_500_000  # bytes of a page and of what no other page uses
SHORTEST_ALT = 15  # characters: fewer cannot say what a figure shows

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


@cache  # every gate reads every page
def parse(html: str) -> BeautifulSoup:
    """A page's tree."""
    return BeautifulSoup(html, "html.parser")


def pages(site: Path) -> Iterator[tuple[str, BeautifulSoup]]:
    """The name and the tree of every page.

    Raises:
        FileNotFoundError: There is no built site.
    """
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


def foreign_urls(site: Path) -> list[str]:
    """Whatever a page, a style sheet or a script would fetch from another host."""
    found = [(name, url) for name, tree in pages(site) for url in loaded(tree)]
    for suffix, addresses in ((".css", in_css), (".js", IN_SCRIPT.findall)):
        for path in site.rglob(f"*{suffix}"):
            text = text_of(path)
            found += [(path.relative_to(site).as_posix(), url) for url in addresses(text)]
    return [
        f"{name}: fetches {url}"
        for name, url in found
        if urlsplit(url).netloc and urlsplit(url).scheme in ("", "http", "https")
    ]


def alt_texts(site: Path) -> list[str]:
    """Images without a text that says what they show."""
    problems = []
    for name, tree in pages(site):
        for picture in tree.find_all(["img", "svg"]):
            fault = alt_fault(picture)
            if fault:
                problems.append(f"{name}: {str(picture)[:80]}: {fault}")
    return problems


def alt_fault(picture: Tag) -> str:
    """What is wrong with an image's text, or nothing."""
    if picture.name == "svg":
        text = picture.get("aria-label", "") or (picture.title.get_text() if picture.title else "")
        if picture.get("aria-hidden") == "true":
            return ""
    elif "alt" not in picture.attrs:
        return "no alt text"
    else:
        text = picture["alt"].strip()
    beside = picture.find_parent(["a", "button"])
    if not text and beside is not None and beside.get_text(strip=True):
        return ""  # an ornament of a link or button that says in words what it is
    if picture.find_parent("article") is None:
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
        here = site / name
        for url in [*(tag["href"] for tag in tree.find_all("a", href=True)), *loaded(tree)]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or url == "#":
                continue
            target = here.parent / unquote(parts.path) if parts.path else here
            anchor = unquote(parts.fragment)
            if not target.is_file():
                problems.append(f"{name}: {url} leads nowhere")
            elif anchor and anchor not in anchors.get(target.resolve(), {anchor}):
                problems.append(f"{name}: {url} names an anchor that is not there")
    return problems


def heavy_pages(site: Path) -> list[str]:
    """Pages that weigh too much: their own bytes and those of files that they alone load.

    A figure's narrow form is not counted: it is loaded in place of the other.
    """
    users: dict[Path, set[str]] = {}
    for name, tree in pages(site):
        for url in loaded(tree):
            file = ((site / name).parent / unquote(urlsplit(url).path)).resolve()
            mine = not urlsplit(url).scheme and file.is_file() and "_static" not in file.parts
            if mine and not file.stem.endswith("-narrow"):
                users.setdefault(file, set()).add(name)
    problems = []
    for name, _ in pages(site):
        own = [site / name, *(file for file, names in users.items() if names == {name})]
        weight = sum(file.stat().st_size for file in own)
        if weight > HEAVIEST:
            problems.append(f"{name}: {weight:,} bytes, at most {HEAVIEST:,} are allowed")
    return problems


GATES: list[Callable[[Path], list[str]]] = [foreign_urls, alt_texts, broken_links, heavy_pages]
