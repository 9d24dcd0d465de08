"""Makes an e-book of the built site: ``make epub`` writes ``_build/book.epub``.

Pandoc gets the pages of the PDF, joined into one, without what is folded, and cuts them again.
"""

import base64
import io
import re
import tempfile
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from bs4 import BeautifulSoup, Tag
from PIL import Image

from book.tools.address import ROOT, SITE
from book.tools.pdf.sheets import entries

READER = "html+tex_math_single_backslash"
METADATA = (
    "title:Vision transformers: a book that checks its sources",
    "author:The minivit authors",
    "lang:en",
    "rights:CC BY 4.0",
)
GONE = (
    "script, style, button, input, label, output, source, link, svg.icon, .headerlink, .stacked, "
    ".take, .only-dark, a[download], img[hidden], details:not(.verdict, .answer), .verdict .thumb"
)
DATA = re.compile(r"data:image/\w+;base64,(.*)", re.DOTALL)


def chapter(site: Path, name: str, names: set[str], folder: Path) -> str:
    """A page's article, in which every anchor carries the page's name, and pictures are files."""
    address = f"{name}.html"
    tree = BeautifulSoup((site / address).read_text(encoding="utf-8"), "html.parser")
    article = tree.select_one("article.bd-article")
    for tag in article.select(GONE):
        tag.decompose()
    for card in article.select(".cell .verdict dl"):
        for tag in card.find_all(["dt", "dd"])[4:]:
            tag.decompose()
    for tag in article.select("details, summary, noscript, picture"):
        tag.name = {"details": "div", "summary": "p"}.get(tag.name, "span")
    for tag in article.select("[id]"):
        tag["id"] = anchor(address, str(tag["id"]))
    for tag in article.select("a[href]"):
        page, place = urldefrag(urljoin(address, str(tag["href"])))
        if page.removesuffix(".html") in names:
            tag["href"] = "#" + anchor(page, place)
        elif not page.startswith("http"):
            tag.unwrap()  # leads to what is left out
    for number, tag in enumerate(article.select("img")):
        tag["src"] = picture(site / name, tag, folder / f"{name.replace('/', '-')}-{number}.png")
    for tag in article.select("figure[id], dt[id]"):  # pandoc leads no link to these themselves
        tag.insert(0, tree.new_tag("span", id=tag.attrs.pop("id")))
    for section in article.select("section"):  # pandoc cuts at headings that stand in nothing
        heading = section.find(["h1", "h2", "h3", "h4"])
        if isinstance(heading, Tag):
            heading["id"] = section["id"]
            if heading.name == "h1":  # the page's own name; the contents repeat what is inside
                heading["id"] = anchor(address, "")
                heading.insert_after(tree.new_tag("div", id=section["id"]))
        section.unwrap()
    return article.decode_contents()


def anchor(page: str, place: str) -> str:
    """The name of a place of a page in the one page that all become."""
    return re.sub(r"[^\w-]", "-", f"{page.removesuffix('.html')}--{place}")


def picture(page: Path, tag: Tag, file: Path) -> str:
    """Where an image is to be had; what e-books cannot show, WebP, is written as PNG."""
    source = str(tag["src"])
    stored = DATA.match(source)
    path = (page.parent / source).resolve()
    if not stored and path.suffix != ".webp":
        return str(path)
    data = base64.b64decode(stored[1]) if stored else path.read_bytes()
    with Image.open(io.BytesIO(data)) as image:
        image.save(file)
    return str(file)


def main(out: Path = ROOT / "_build/book.epub", site: Path = SITE) -> None:
    import pypandoc

    order = list(entries())
    names = {name for kind, name in order if kind == "page"}
    with tempfile.TemporaryDirectory() as folder:
        pages = [chapter(site, n, names, Path(folder)) for kind, n in order if kind == "page"]
        options = ["--mathml", "--split-level=1", "--toc", "--toc-depth=1"]
        options += [f"--metadata={item}" for item in METADATA]
        text = "\n".join(pages)
        pypandoc.convert_text(text, "epub3", READER, outputfile=str(out), extra_args=options)
    print(f"The e-book is ready: {out}")


if __name__ == "__main__":
    main()
