"""Under each figure a line to take it along: its files, and how to cite it.

Every figure is there as the PNG of its page. Those that ``book.tools.figures`` has drawn again are there
as SVG, and as PNG for print, too. The directive ``figures-to-take`` lists them all.
"""

import re
import shutil
import zipfile
from html import escape
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from book._ext import drawn
from book._ext.chapters import notebook
from book._ext.claims import html
from book._ext.thumbnails import image, scaled
from course.claims.cite import citation
from course.claims.rows import BOOK

PLACE, SMALL = "_static/figures", "_static/figures/small"
FIGURE = re.compile(
    r'<figure class="[^"]*" id="(fig-[\w-]+)">(?:(?!</figure>).)*?'
    r'<img [^>]*src="([^"]*_images/[^"]+\.png)".*?(?=</figcaption>)',
    re.DOTALL,
)
NUMBER = re.compile(r'<span class="caption-number">(.*?)\s*</span>')


def cite(number: str, url: str) -> str:
    """The line that cites a figure."""
    said = citation()
    authors = ", ".join(one["name"] for one in said["authors"])
    parts = [
        f"{number} of “{said['title']}”",
        authors,
        f"version {said['version']}",
        url,
    ]
    return ", ".join(filter(None, parts)) + ". CC BY 4.0."


def line(name: str, png: str, up: str, number: str, url: str) -> str:
    """The links of a figure.

    Args:
        png: Where its page has it.
        up: From its page to the root.
    """
    files = {
        kind: f"{up}{PLACE}/{name}.{kind}"
        for kind in ("svg", "png")
        if (drawn.DRAWN / f"{name}.{kind}").exists()
    }
    files = {"png": png} | files
    links = " ".join(
        f'<a href="{files[kind]}" download="{name}.{kind}">{kind.upper()}</a>'
        for kind in sorted(files, reverse=True)
    )
    return (
        f'<span class="take">Take it: {links} <button type="button" '
        f'data-clipboard-text="{escape(cite(number, url))}">copy citation</button></span>'
    )


def offer(
    app: Sphinx,
    page: str,
    template: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Writes the line under the figures of a page."""
    if "body" not in context:
        return
    up, base = "../" * page.count("/"), app.config.html_baseurl

    def with_line(match: re.Match) -> str:
        number = NUMBER.search(match[0])
        said = re.sub(r"^Fig\.", "Figure", number[1]) if number else "A figure"
        url = f"{base}{page}.html#{match[1]}" if base else ""
        return match[0] + line(match[1], match[2], up, said.strip(), url)

    context["body"] = FIGURE.sub(with_line, context["body"])


class FiguresToTake(SphinxDirective):
    """Every figure, small, with its number, which leads to it, and how its caption begins."""

    def run(self) -> list[nodes.Node]:
        listing = nodes.bullet_list(classes=["figures-to-take"])
        for chapter, cell, data in drawn.figures():
            self.env.note_dependency(str(notebook(chapter)))
            copy = small(chapter, cell, data)
            name = cell.metadata["mystnb"]["figure"]["name"]
            picture = (
                f'<img src="../{SMALL}/{copy.file}" alt="{escape(copy.alt)}" '
                f'width="{copy.width}" height="{copy.height}" loading="lazy">'
            )
            link = addnodes.pending_xref(
                "",
                nodes.literal("", name),
                refdomain="std",
                reftype="numref",
                reftarget=name,
                refexplicit=False,
                refwarn=True,
                refdoc=self.env.docname,
            )
            entry = nodes.list_item(
                "", html(picture), nodes.paragraph("", "", link)
            )
            if (drawn.DRAWN / f"{name}.svg").exists():
                entry += html(
                    f'<p><a href="../{PLACE}/{name}.svg" download>SVG</a> '
                    f'<a href="../{PLACE}/{name}.png" download>PNG</a></p>'
                )
            listing += entry
        archive = f'<p><a href="../{PLACE}/figures.zip" download>All of them in one file</a></p>'
        return [html(archive)] * drawn.some() + [listing]


def small(chapter: str, cell: nbformat.NotebookNode, data: dict):
    """A copy of a figure, to choose by."""
    found = image(cell, data)
    assert found is not None
    return scaled(f"{chapter[:2]}-{cell.id}", *found, 240)


def outdated(app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """The pages to write again where other figures are drawn than at the last build."""
    last = getattr(env, "drawn_figures", None)
    env.drawn_figures = sorted(path.name for path in drawn.DRAWN.glob("*"))
    if env.drawn_figures == last:
        return []
    pages = {"book/figures", *(f"book/{name}" for name in drawn.notebooks())}
    return sorted(pages & env.found_docs)


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the files; Sphinx calls this at the end."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    shutil.rmtree(out / PLACE, ignore_errors=True)
    (out / SMALL).mkdir(parents=True)
    for chapter, cell, data in drawn.figures():
        copy = small(chapter, cell, data)
        (out / SMALL / copy.file).write_bytes(copy.webp)
    if drawn.some():
        with zipfile.ZipFile(
            out / PLACE / "figures.zip", "w", zipfile.ZIP_DEFLATED
        ) as archive:
            for name in ("LICENSE-text", "CITATION.cff"):
                archive.write(BOOK.parent / name, f"figures/{name}")
            for file in drawn.files():
                shutil.copy(file, out / PLACE)
                archive.write(file, f"figures/{file.name}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("figures-to-take", FiguresToTake)
    app.connect("env-get-outdated", outdated)
    app.connect("html-page-context", offer)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
