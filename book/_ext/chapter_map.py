"""Sphinx directives ``chapter-map`` and ``visits``: the book at a glance, and ways through it.

They read ``book/chapters.yml``, the titles in ``book/claims.yml`` and the notebooks that exist, so
that a chapter that is written gets its link, its length and its verdicts by itself.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book._ext.chapters import MAP, length, load_map, names, notebook
from book._ext.claims import found
from course.claims.card import css_class
from course.claims.rows import BOOK, load
from vitlab.claims.rules import word_of


class ChapterMap(SphinxDirective):
    """Each part with its question, each chapter with its own, what it needs and what it found.

    With a part's title as its argument, the chapters of this part alone.
    """

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        _note_dependencies(self.env)
        parts = nodes.container(classes=["chapter-map"])
        for number, part in enumerate(load_map()["parts"]):
            if not part["chapters"] or self.arguments not in ([], [part["title"]]):
                continue
            heading = nodes.paragraph(classes=["map-part"])
            heading += nodes.strong(
                "", f"{['I', 'II', 'III', 'IV', 'V'][number]}. {part['title']}"
            )
            heading += nodes.Text(f" {part['question']}")
            chapters = nodes.bullet_list()
            for name, about in part["chapters"].items():
                chapters += self.card(name, about, found())
            parts += [chapters] if self.arguments else [heading, chapters]
        return [parts]

    def card(self, name: str, about: dict, found: dict) -> nodes.list_item:
        """One chapter."""
        title = nodes.paragraph("", "", _link(name), classes=["map-title"])
        card = nodes.list_item("", title, nodes.paragraph("", about["question"]))
        facts = f"Needs {_listed(about['needs'])}. " if about["needs"] else ""
        if notebook(name).exists():
            facts += str(length(notebook(name)))
        card += nodes.paragraph("", facts.strip(), classes=["map-facts"])
        card += self.strip(name, found)
        return card

    def strip(self, name: str, found: dict) -> nodes.paragraph:
        """A stroke for each claim of a chapter, coloured by its verdict."""
        claims = [
            claim.id for claim in load().claims.values() if claim.chapter == name
        ]
        strip = nodes.paragraph(classes=["map-strip"])
        for claim in claims:
            word = word_of(found[claim].verdict) if claim in found else "open"
            strip += nodes.inline("", "", classes=[css_class(word)])
        answered = sum(claim in found for claim in claims)
        said = f"{answered} of {len(claims)} claims answered"
        strip += nodes.inline("", said, classes=["map-count"])
        return strip


class Visits(SphinxDirective):
    """Three ways through the book, by the time a reader has."""

    def run(self):
        _note_dependencies(self.env)
        chapters, result = names(), []
        for visit in load_map()["visits"]:
            section = nodes.section(ids=[nodes.make_id(visit["title"])])
            section += nodes.title("", visit["title"])
            section += nodes.paragraph("", visit["for"])
            steps = nodes.bullet_list()
            for step in visit["steps"]:
                line = nodes.paragraph("", "", _link(chapters[step["chapter"]]))
                line += nodes.Text(f": {step['do']}")
                steps += nodes.list_item("", line)
            section += steps
            result.append(section)
        return result


def say_length(app: Sphinx, doctree: nodes.document) -> None:
    """Below a chapter's title, how long it takes: its core, what is deeper, its exercises."""
    name = app.env.docname.rpartition("/")[2]
    if app.env.docname == f"book/{name}" and name in names().values():
        title = next(doctree.findall(nodes.title))
        said = nodes.paragraph(
            "", str(length(notebook(name))), classes=["map-facts"]
        )
        title.parent.insert(title.parent.index(title) + 1, said)


def _link(name: str) -> nodes.Node:
    """A chapter's number and title: a link where it is written, and said so where it is not."""
    said = f"{int(name[:2])} {load().chapters[name]}"
    if notebook(name).exists():
        return nodes.reference("", said, refuri=f"{name}.html", internal=True)
    return nodes.inline("", f"{said} (to come)", classes=["to-come"])


def _listed(numbers: list[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def _note_dependencies(env) -> None:
    for path in (MAP, BOOK / "claims.yml", *map(notebook, names().values())):
        env.note_dependency(str(path))


def setup(app: Sphinx) -> dict:
    app.add_directive("chapter-map", ChapterMap)
    app.add_directive("visits", Visits)
    app.connect("doctree-read", say_length)
    return {"parallel_read_safe": True}
