"""What a page says of itself where a link to it is shown: a title, a description, an image."""

import textwrap
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from PIL import Image, ImageOps
from sphinx.application import Sphinx

PICTURED = "book/13_what_layernorm_forgets"  # lends its image to pages without one
CARD = (1200, 630)  # pixels, as those who show links want them


def describe(
    app: Sphinx,
    page: str,
    template: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Adds the metadata of a page. Images need the site's address, and wait for one."""
    book = app.config.html_title
    title = BeautifulSoup(
        context.get("title") or page.capitalize(), "html.parser"
    ).get_text()
    if page == app.config.root_doc:
        title = context["title"] = book
        context["docstitle"] = ""  # what follows the title of any other page
    about = summary(doctree) if doctree else book
    said = {
        "og:type": "website" if title == book else "article",
        "og:site_name": book,
        "og:title": title,
        "og:description": about,
    }
    if context.get("pageurl"):
        source, alt = picture(app, page) or picture(app, PICTURED) or (None, None)
        said["og:url"] = context["pageurl"]
        if source:
            name = f"_images/card-{source.stem}.jpg"
            draw_card(source, Path(app.outdir, name))
            said["og:image"] = f"{app.config.html_baseurl.rstrip('/')}/{name}"
            said["og:image:alt"] = textwrap.shorten(alt, 400, placeholder=" …")
    lines = [
        f'<meta property="{key}" content="{escape(value)}" />'
        for key, value in said.items()
    ]
    lines.append(f'<meta name="description" content="{escape(about)}" />')
    lines.append('<meta name="twitter:card" content="summary_large_image" />')
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def summary(doctree: nodes.document) -> str:
    """The first paragraph of a page, or as much of it as fits into a description."""
    paragraphs = (node.astext() for node in doctree.findall(nodes.paragraph))
    first = next((text for text in paragraphs if len(text) > 40), "")
    return textwrap.shorten(first, 250, placeholder=" …")


def picture(app: Sphinx, page: str) -> tuple[Path, str] | None:
    """The file of a page's first figure, with its text, or nothing."""
    if page not in app.env.found_docs:
        return None
    for image in app.env.get_doctree(page).findall(nodes.image):
        if image["uri"].endswith(".png"):
            return Path(app.srcdir, image["uri"]), image.get("alt", "")
    return None


def draw_card(source: Path, target: Path) -> None:
    """Fits a figure onto a white card."""
    target.parent.mkdir(exist_ok=True)
    with Image.open(source) as figure:
        ImageOps.pad(figure.convert("RGB"), CARD, color="white").save(
            target, quality=85
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
