"""Under each figure a line to take it along: its files, and how to cite it; all in a list.

Those that ``book.tools.figures`` has drawn again are there as SVG, and as PNG for print, too.
"""

import re
import shutil
import zipfile
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from book._ext.chapters import notebook
from book._ext.figures import STORED, figures, small, stored, with_figures
from book._ext.pages import from_template, html, when_built
from book.tools.address import FIGURES, ROOT
from book.tools.edition.tree import title
from book.tools.notebooks import figure_name
from course.claims.cite import citation

PLACE = "_static/figures"
FIGURE = re.compile(
    r'<figure class="[^"]*" id="(fig-[\w-]+)">(?:(?!</figure>).)*?'
    r'<img [^>]*src="([^"]*_images/[^"]+\.png)".*?(?=</figcaption>)',
    re.DOTALL,
)
TO_A_FIGURE = {"refdomain": "std", "reftype": "numref", "refexplicit": False, "refwarn": True}
SENTENCE = re.compile(r"(?!Left|Above).{25,}?[.?!](?= [A-Z(]|$)|.+")  # the first, or all
NUMBER = re.compile(r'<span class="caption-number">(.*?)\s*</span>')


def files(name: str, png: str, up: str) -> dict[str, str]:
    """Where a page that is ``up`` below the root has a figure's files, by kind, SVG first."""
    drawn = [kind for kind in ("svg", "png") if (FIGURES / f"{name}.{kind}").exists()]
    places = {"png": png} | {kind: f"{up}{PLACE}/{name}.{kind}" for kind in drawn}
    return dict(sorted(places.items(), reverse=True))


def offer(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Writes the line under the figures of a page."""
    book, base = citation(), app.config.html_baseurl
    authors = ", ".join(author["name"] for author in book["authors"])

    def with_line(match: re.Match) -> str:
        figure, name, png = match.group(0, 1, 2)
        caption = NUMBER.search(figure)
        number = re.sub(r"^Fig\.", "Figure", caption[1]).strip() if caption else "A figure"
        url = f"{base}{page}.html#{name}" if base else ""
        parts = [f"{number} of “{book['title']}”", authors, f"version {book['version']}", url]
        cited = ", ".join(filter(None, parts)) + ". CC BY 4.0."
        own = files(name, png, "../" * page.count("/"))
        return figure + from_template("take.html", name=name, files=own, cited=cited)

    if "body" in context:
        context["body"] = FIGURE.sub(with_line, context["body"])


class FiguresToTake(SphinxDirective):
    """Every figure by chapter, small, with its number, which leads to it, and what it shows."""

    def run(self) -> list[nodes.Node]:
        archive = f'<p><a href="../{PLACE}/figures.zip" download>All of them in one file</a></p>'
        return [html(archive)] * any(FIGURES.glob("*.svg")) + [
            self.section(chapter, [(cell, data) for _, cell, data in group])
            for chapter, group in groupby(figures(), lambda figure: figure[0])
        ]

    def section(self, chapter: str, pictures: list[tuple]) -> nodes.section:
        """The figures of a chapter, or of a page of recipes."""
        self.env.note_dependency(str(notebook(chapter)))
        listing = nodes.bullet_list(classes=["figures-to-take"])
        for cell, data in pictures:
            name = figure_name(cell)
            link = addnodes.pending_xref("", nodes.literal("", name), **TO_A_FIGURE)
            link["reftarget"], link["refdoc"] = name, self.env.docname
            caption = SENTENCE.match(" ".join(cell.metadata.mystnb.figure.caption.split()))
            said, _ = self.state.inline_text(caption[0] if caption else "", self.lineno)
            text = nodes.paragraph("", "", link, nodes.Text(" "), *said)
            links = " ".join(
                f'<a href="{address}" download="{name}.{kind}">{kind.upper()}</a>'
                for kind, address in files(name, f"../_images/{stored(data)}", "../").items()
            )
            image = html(small(chapter, cell, data).tag(f"../{STORED}"))
            listing += nodes.list_item("", image, text, html(f"<p>{links}</p>"))
        ids = [f"of-{chapter.partition('_')[0]}"]
        heading = nodes.title("", title(f"book/{chapter}"))
        return nodes.section("", heading, listing, ids=ids, names=ids)


def outdated(app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """The pages to write again where other figures are drawn than at the last build."""
    last = getattr(env, "drawn_figures", None)
    env.drawn_figures = sorted(path.name for path in FIGURES.glob("*"))
    if env.drawn_figures == last:
        return []
    return sorted({"book/figures", *(f"book/{n}" for n in with_figures())} & env.found_docs)


def write(app: Sphinx) -> None:
    out = Path(app.outdir)
    shutil.rmtree(out / PLACE, ignore_errors=True)
    if not any(FIGURES.glob("*.svg")):
        return
    (out / PLACE).mkdir(parents=True)
    with zipfile.ZipFile(out / PLACE / "figures.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("LICENSE-text", "CITATION.cff"):
            archive.write(ROOT / name, f"figures/{name}")
        for _, cell, _ in figures():
            for file in sorted(FIGURES.glob(f"{figure_name(cell)}.*")):
                shutil.copy(file, out / PLACE)
                archive.write(file, f"figures/{file.name}")


def setup(app: Sphinx) -> None:
    app.add_directive("figures-to-take", FiguresToTake)
    app.connect("env-get-outdated", outdated)
    app.connect("html-page-context", offer)
    when_built(app, write)
