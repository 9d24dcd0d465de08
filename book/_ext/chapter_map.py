"""Sphinx directives ``chapter-map`` and ``visits``: the book at a glance, and ways through it."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book._ext.chapters import length, load_map, names, notebook
from book._ext.claims import note_dependencies, verdicts
from book._ext.figures import STORED, figures, small
from book._ext.ledger_page import word
from book._ext.pages import html
from course.claims.card import css_class
from course.claims.rows import load

NUMERALS = ("I", "II", "III", "IV", "V", "VI")


class ChapterMap(SphinxDirective):
    """Each part, or the one that is named, with its chapters: what they ask, need and found."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        note_dependencies(self.env)
        parts = nodes.container(classes=["chapter-map"])
        for numeral, part in zip(NUMERALS, load_map()["parts"], strict=False):
            if not part["chapters"] or self.arguments not in ([], [part["title"]]):
                continue
            heading = nodes.paragraph(classes=["map-part"])
            heading += nodes.strong("", f"{numeral}. {part['title']}")
            heading += nodes.Text(f" {part['question']}")
            chapters = nodes.bullet_list("", *(_card(*item) for item in part["chapters"].items()))
            parts += [chapters] if self.arguments else [heading, chapters]
        return [parts]


def _card(name: str, chapter: dict) -> nodes.list_item:
    """One chapter: its first figure, and a stroke for each claim, coloured by its verdict."""
    needs = re.sub(r", (\d+)$", r" and \1", ", ".join(map(str, chapter["needs"])))
    facts = (f"Needs {needs}. " if needs else "") + str(length(notebook(name)))
    claims = [claim.id for claim in load().claims.values() if claim.chapter == name]
    strokes = [nodes.inline("", "", classes=[css_class(word(c, verdicts()))]) for c in claims]
    count = f"{len(verdicts().keys() & claims)} of {len(claims)} claims answered"
    counted = nodes.inline("", count, classes=["map-count"])
    strip = nodes.paragraph("", "", *strokes, counted, classes=["map-strip"])
    title = nodes.paragraph("", "", _link(name), classes=["map-title"])
    question = nodes.paragraph("", chapter["question"])
    minutes = nodes.paragraph("", facts, classes=["map-facts"])
    own = [figure for figure in figures() if figure[0] == name]
    first = [html(small(*figure).tag(f"../{STORED}", 'class="map-picture" ')) for figure in own[:1]]
    return nodes.list_item("", *first, title, question, minutes, strip)


class Visits(SphinxDirective):
    """Three ways through the book, by the time a reader has."""

    def run(self):
        note_dependencies(self.env)
        chapters, sections = names(), []
        for visit in load_map()["visits"]:
            steps = nodes.bullet_list()
            for step in visit["steps"]:
                line = nodes.paragraph("", "", _link(chapters[step["chapter"]]))
                line += nodes.Text(f": {step['do']}")
                steps += nodes.list_item("", line)
            text = nodes.title("", visit["title"]), nodes.paragraph("", visit["for"]), steps
            sections.append(nodes.section("", *text, ids=[nodes.make_id(visit["title"])]))
        return sections


def say_length(app: Sphinx, doctree: nodes.document) -> None:
    """Below a chapter's title, how long it takes: its core, what is deeper, its exercises."""
    name = app.env.docname.rpartition("/")[2]
    if app.env.docname == f"book/{name}" and name in names().values():
        title = next(doctree.findall(nodes.title))
        paragraph = nodes.paragraph("", str(length(notebook(name))), classes=["map-facts"])
        title.parent.insert(title.parent.index(title) + 1, paragraph)


def _link(name: str) -> nodes.reference:
    """A chapter's number and title."""
    title = f"{int(name[:2])} {load().chapters[name]}"
    return nodes.reference("", title, refuri=f"{name}.html", internal=True)


def setup(app: Sphinx) -> None:
    app.add_directive("chapter-map", ChapterMap)
    app.add_directive("visits", Visits)
    app.connect("doctree-read", say_length)
