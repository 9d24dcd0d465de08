"""What can be checked on the built pages without a browser; each gate lists the problems it finds.

A problem is one line that begins with the page's name. Pages are read as the browser gets them.
"""

import codecs
import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

HEAVIEST = 1_500_000  # bytes of a page and of what no other page uses
FIRST_LOAD = 500_000  # bytes, compressed, of a page and its styles, scripts and fonts
SHORTEST_ALT = 15  # characters: fewer cannot say what a figure shows
TITLE = "vision transformer"  # what every page's title tells those who find it
SUMMARY = range(40, 301)  # characters of a description
Gate = Callable[[Path], list[str]]

# Attributes whose address the browser fetches by itself, of any tag; links are followed by readers.
LOADS = ("src", "poster", "data", "xlink:href")  # and srcset, which has several
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
    return BeautifulSoup(html, "html.parser")


def pages(site: Path) -> Iterator[tuple[str, BeautifulSoup]]:
    if not (site / "index.html").is_file():
        raise FileNotFoundError(f"no site in {site}: build it with `make site`")
    for page in sorted(site.rglob("*.html")):
        if "_static" not in page.relative_to(site).parts:
            yield page.relative_to(site).as_posix(), parse(page.read_text(encoding="utf-8"))


def loaded(tree: BeautifulSoup) -> Iterator[str]:
    """Addresses that the browser fetches by itself when it shows a page."""
    for attribute in LOADS:
        yield from (tag[attribute] for tag in tree.find_all(attrs={attribute: True}))
    for tag in tree.find_all(srcset=True):
        yield from (part.split()[0] for part in tag["srcset"].split(",") if part.strip())
    for tag in tree.find_all(["link", "image", "use"], href=True):
        if tag.name != "link" or LINKS_THAT_LOAD.intersection(tag.get("rel", [])):
            yield tag["href"]
    styles = [tag["style"] for tag in tree.find_all(style=True)]
    for style in [*styles, *(tag.get_text() for tag in tree.find_all("style"))]:
        yield from in_css(style)
    for tag in tree.find_all("script", src=False):
        yield from IN_SCRIPT.findall(tag.get_text())


def in_css(text: str) -> list[str]:
    return [url or imported for url, imported in IN_CSS.findall(text)]


def file_of(page: Path, url: str) -> Path | None:
    """The file of this site that an address of a page names; none of another site."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return None
    return (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()


def of_each_page(gate: Callable[[Path, BeautifulSoup], Iterator[str]]) -> Gate:
    """A gate of what a function finds wrong with one page, its file and its tree."""

    @wraps(gate)
    def of_site(site: Path) -> list[str]:
        found = ((name, gate(site / name, tree)) for name, tree in pages(site))
        return [f"{name}: {fault}" for name, faults in found for fault in faults]

    return of_site


def foreign_urls(site: Path) -> list[str]:
    """Whatever a page, a style sheet or a script would fetch from another host."""
    urls = [(name, url) for name, tree in pages(site) for url in loaded(tree)]
    for suffix, addresses in ((".css", in_css), (".js", IN_SCRIPT.findall)):
        for path in site.rglob(f"*{suffix}"):
            name = path.relative_to(site).as_posix()
            urls += [(name, url) for url in addresses(text_of(path))]
    return [
        f"{name}: fetches {url}"
        for name, url in urls
        if urlsplit(url).netloc and urlsplit(url).scheme in ("", "http", "https")
    ]


@of_each_page
def alt_texts(page: Path, tree: BeautifulSoup) -> Iterator[str]:
    """Images without a text that says what they show."""
    for image in tree.find_all(["img", "svg"]):
        if fault := alt_fault(image):
            yield f"{str(image)[:80]}: {fault}"


def alt_fault(image: Tag) -> str:
    """What is wrong with an image's text, or nothing."""
    if image.get("aria-hidden") == "true":
        return ""
    if image.name == "svg":
        text = image.get("aria-label", "") or (image.title.get_text() if image.title else "")
    elif "alt" not in image.attrs:
        return "no alt text"
    else:
        text = image["alt"].strip()
    around = image.find_parent(["a", "button"])
    if not text and around is not None and around.get_text(strip=True):
        return ""  # an ornament of a link or button that says in words what it is
    if image.find_parent("article") is None:
        return "" if text else "empty alt text"
    if re.search(r"\.(png|jpe?g|svg|gif|webp)$|^[\w/.-]+$", text) or len(text) < SHORTEST_ALT:
        return f"alt text {text!r} does not say what is shown"
    return ""


@cache
def anchors(page: Path) -> set[str]:
    return {tag["id"] for tag in parse(page.read_text(encoding="utf-8")).find_all(id=True)}


@of_each_page
def broken_links(page: Path, tree: BeautifulSoup) -> Iterator[str]:
    """Links to files and anchors of this site that are not there."""
    for url in [*(tag["href"] for tag in tree.find_all("a", href=True)), *loaded(tree)]:
        target, anchor = file_of(page, url), unquote(urlsplit(url).fragment)
        if target is None or url == "#":
            continue
        if not target.is_file():
            yield f"{url} leads nowhere"
        elif anchor and target.suffix == ".html" and anchor not in anchors(target):
            yield f"{url} names an anchor that is not there"


def heavy_pages(site: Path) -> list[str]:
    """Pages that weigh too much with the files that they alone load, but for narrow forms."""
    users = defaultdict(set)
    for name, tree in pages(site):
        for file in filter(None, (file_of(site / name, url) for url in loaded(tree))):
            if file.is_file() and "_static" not in file.parts and "-narrow" not in file.name:
                users[file].add(name)
    weights = {name: (site / name).stat().st_size for name, _ in pages(site)}
    for file, (name, *others) in users.items():
        weights[name] += 0 if others else file.stat().st_size
    return [
        f"{name}: {weight:,} bytes, at most {HEAVIEST:,} are allowed"
        for name, weight in weights.items()
        if weight > HEAVIEST
    ]


@of_each_page
def first_load(page: Path, tree: BeautifulSoup) -> Iterator[str]:
    """What costs too much before it can be read."""
    files = set(filter(None, (file_of(page, url) for url in loaded(tree))))
    files = {page, *(file for file in files if file.suffix in (".css", ".js"))}
    files |= {font for sheet in files if sheet.suffix == ".css" for font in fonts(sheet)}
    weight = sum(compressed(file) for file in files if file.is_file())
    if weight > FIRST_LOAD:
        yield f"{weight:,} bytes at first, at most {FIRST_LOAD:,} allowed"


@cache
def fonts(sheet: Path) -> frozenset[Path]:
    urls = in_css(sheet.read_text(encoding="utf-8")) if sheet.is_file() else []
    files = (sheet.parent.joinpath(urlsplit(url).path).resolve() for url in urls)
    return frozenset(f for f in files if f.suffix in (".woff", ".woff2", ".ttf", ".otf"))


@cache
def compressed(file: Path) -> int:
    return len(gzip.compress(file.read_bytes(), compresslevel=6))


@of_each_page
def formulas(page: Path, tree: BeautifulSoup) -> Iterator[str]:
    """Formulas that are not MathML, which browsers show without a script."""
    for tag in tree.select(".math"):
        shown = [text for text in tag.find_all(string=True) if text.parent.name != "annotation"]
        if tag.math is None or any("\\" in text for text in shown):
            yield f"{str(tag)[:80]}: a formula in TeX"
    yield from (f"loads {url}" for url in loaded(tree) if "mathjax" in url.casefold())


@of_each_page
def icons(page: Path, tree: BeautifulSoup) -> Iterator[str]:
    """Icons that wait for a font or a script that the pages do not load."""
    for tag in tree.select("i[class], span[class]"):
        if any(ICON.fullmatch(word) for word in tag["class"]):
            yield f"icon {' '.join(tag['class'])} is not drawn"


@of_each_page
def images(page: Path, tree: BeautifulSoup) -> Iterator[str]:
    """Images in the text that push it about when they arrive, or arrive before it."""
    for number, image in enumerate(tree.select("article img:not([src$='.svg'])")):
        if not (image.get("width") and image.get("height")):
            yield f"{str(image)[:80]}: no width and height"
        if number and image.get("loading") != "lazy" and not image["src"].startswith("data:"):
            yield f"{str(image)[:80]}: below the first screen, not lazy"


@of_each_page
def metadata(page: Path, tree: BeautifulSoup) -> Iterator[str]:
    """What pages do not say where a link to them is shown."""
    if page.name == "404.html":
        return
    tags = tree.find_all("meta")
    values = {tag.get("property") or tag.get("name"): tag.get("content", "") for tag in tags}
    title = tree.title.get_text() if tree.title else ""
    if TITLE not in title.casefold():
        yield f"title {title!r} does not say {TITLE!r}"
    if len(values.get("description", "")) not in SUMMARY:
        yield f"description {values.get('description')!r} is too short or too long"
    viewports = len(tree.find_all("meta", attrs={"name": "viewport"}))
    if viewports != 1:
        yield f"{viewports} viewports"
    wanted = {"og:type", "og:title", "og:description", "og:site_name", "twitter:card"}
    if tree.find("link", rel="canonical"):  # the site knows where it is published
        wanted |= {"og:url", "og:image", "og:image:alt"}
        card = urlsplit(values.get("og:image", ""))
        folder = next(up for up in page.parents if (up / "index.html").is_file())
        if not (card.netloc and (folder / "_images" / card.path.rpartition("/")[2]).is_file()):
            yield f"og:image {card.geturl()!r} is not there"
    yield from (f"no {key}" for key in sorted(wanted) if not values.get(key))


GATES: list[Gate] = [
    *(foreign_urls, alt_texts, broken_links, heavy_pages),  # is a page whole, and alone?
    *(first_load, formulas, icons, images, metadata),  # what does it cost, and say of itself?
]
