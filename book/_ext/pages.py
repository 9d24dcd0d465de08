"""What the pages need beyond Jupyter Book: chapter numbers, typography, and metadata: a title, a
description and an image, where a link to a page is shown.
"""

import re
import textwrap
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from docutils import nodes
from jinja2 import Environment, FunctionLoader
from PIL import Image, ImageDraw, ImageFont, ImageOps
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx.util.docutils import SphinxRole

from course.claims.rows import BOOK

MATH = re.compile(r'(\()?<span class="math[^>]*>[^<]*</span>(?(1)[,.;:?!)]*|[,.;:?!)]+)')
CAPTION = re.compile(r"<figcaption>.*?</figcaption>", re.DOTALL)
SIDE = re.compile(r"\b(?:Left|Right)\b(?! of\b)|(?<=\()(?:left|right)(?=\))|(?<=; )right(?=,)")
BELOW = {"Left": "Top", "Right": "Bottom", "left": "top", "right": "bottom"}
PICTURED = "book/13_what_layernorm_forgets"  # lends its image to pages without one
CARD = (1200, 630)  # pixels, as those who show links want them


def when_built(app: Sphinx, write: Callable[[Sphinx], None], priority: int = 500) -> None:
    """Has a function called once the pages are written without an error."""

    def finish(app: Sphinx, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            write(app)

    app.connect("build-finished", finish, priority=priority)


def from_template(file: str, **values: Any) -> str:
    """A template of ``book/_templates``, whose lines are one, with these values in its places."""
    return TEMPLATES.get_template(file).render(values, escape=escape)


def _lines(file: str) -> str:
    lines = (BOOK / "_templates" / file).read_text(encoding="utf-8").splitlines()
    return "".join(line.strip() for line in lines)


TEMPLATES = Environment(loader=FunctionLoader(_lines))


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def refused(role: SphinxRole, message: str) -> tuple[list, list]:
    """What a role gives in place of what is not there: an error, which ends the build."""
    error = role.inliner.reporter.error(message, line=role.lineno)
    return [role.inliner.problematic(role.rawtext, role.rawtext, error)], [error]


def number_chapters(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Gives a chapter the number of its file, where Sphinx counts by position: ``02_attention`` is
    chapter 2. Figures and equations, which bear it, are numbered again.
    """
    for docname, numbers in env.toc_secnumbers.items():
        match = re.match(r"(\d+)_", docname.rpartition("/")[2])
        if match is None:
            raise ValueError(f"a numbered chapter's file is called NN_name: got {docname}")
        chapter = [int(match[1])]
        numbers[""] = tuple(chapter)  # the heading on the page
        env.titles[docname]["secnumber"] = chapter  # links to the next page and the previous one
        next(env.tocs[docname].findall(nodes.reference))["secnumber"] = chapter  # the sidebar
    TocTreeCollector().assign_figure_numbers(env)
    return list(env.toc_secnumbers)


def set_text(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Changes what browsers would set badly, or do not know."""
    if "body" in context:  # DPUB-ARIA 1.1 has withdrawn the role that docutils gives
        body = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')
        body = MATH.sub(r'<span class="together">\g<0></span>', body)
        body = body.replace('<span class="pre">--', '<span class="pre together">--')
        context["body"] = CAPTION.sub(lambda caption: SIDE.sub(both_sides, caption[0]), body)


def both_sides(word: re.Match) -> str:
    """Where a panel stands, for wide screens and for phones, where panels may be stacked."""
    return f'<span class="beside">{word[0]}</span><span class="stacked">{BELOW[word[0]]}</span>'


def describe(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Adds the metadata of a page. Images need the site's address, and wait for one."""
    book = app.config.html_title
    title = BeautifulSoup(context.get("title") or page.capitalize(), "html.parser").get_text()
    if page == app.config.root_doc:
        title = context["title"] = book
        context["docstitle"] = ""  # what follows the title of any other page
    said = summary(doctree) if doctree else f"Search in {book}"
    description = context.get("description") or said
    properties = {
        "og:type": "website" if title == book else "article",
        "og:site_name": book,
        "og:title": title,
        "og:description": description,
    }
    if context.get("pageurl"):
        source, alt = picture(app, page) or picture(app, PICTURED) or (None, None)
        properties["og:url"] = context["pageurl"]
        if source:
            name = f"_images/card-{source.stem}.jpg"
            draw_card(source, Path(app.outdir, name), book)
            properties["og:image"] = f"{app.config.html_baseurl.rstrip('/')}/{name}"
            properties["og:image:alt"] = textwrap.shorten(alt, 400, placeholder=" …")
    lines = [f'<meta property="{k}" content="{escape(v)}" />' for k, v in properties.items()]
    lines.append(f'<meta name="description" content="{escape(description)}" />')
    lines.append('<meta name="twitter:card" content="summary_large_image" />')
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def summary(doctree: nodes.document) -> str:
    """The first paragraph of a page, but for a chapter's minutes, as far as a description goes."""
    paragraphs = (p for p in doctree.findall(nodes.paragraph) if "map-facts" not in p["classes"])
    first = next((p.astext() for p in paragraphs if len(p.astext()) > 40), "")
    return textwrap.shorten(first, 250, placeholder=" …")


@cache
def picture(app: Sphinx, page: str) -> tuple[Path, str] | None:
    """The file of a page's first figure, with its text, or nothing."""
    if page in app.env.found_docs:
        for image in app.env.get_doctree(page).findall(nodes.image):
            if image["uri"].endswith(".png"):
                return Path(app.srcdir, image["uri"]), image.get("alt", "")
    return None


@cache
def draw_card(source: Path, target: Path, book: str) -> None:
    """A figure above the book's name."""
    target.parent.mkdir(exist_ok=True)
    card = Image.new("RGB", CARD, "#17624a")
    with Image.open(source) as figure:
        card.paste(ImageOps.pad(figure.convert("RGB"), (CARD[0], CARD[1] - 80), color="white"))
    font = ImageFont.load_default(36)
    ImageDraw.Draw(card).text((CARD[0] / 2, CARD[1] - 40), book, "white", font, anchor="mm")
    card.save(target, quality=85)


def setup(app: Sphinx) -> None:
    drawn: dict[str, Callable] = {}

    def share_contents(app: Sphinx, page: str, template: str, context: dict, doctree: object):
        """Draws the list of contents once for all pages of a folder that are not in it."""
        if doctree is None:
            context["toctree"] = drawn.setdefault(
                page.rpartition("/")[0], cache(context["toctree"])
            )

    app.connect("env-get-updated", number_chapters, priority=900)  # after Sphinx's own numbers
    for change in (share_contents, describe, set_text):
        app.connect("html-page-context", change)
