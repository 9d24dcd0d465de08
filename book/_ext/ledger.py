"""Sphinx directives ``ledger`` and ``claim-grid`` and the role ``claim``.

They read ``book/claims.yml`` and the verdicts stored in the chapters' outputs; nothing is written
down a second time.
"""

import posixpath
from collections import Counter

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from course.claims.ledger import chapters, harvest
from course.claims.rows import BOOK, Claim, load
from course.claims.rules import WORDS, word_of
from course.claims.verdict import css_class

LEDGER = "book/ledger"


class ClaimRole(SphinxRole):
    """``{claim}`R08```: a link to the claim's row in the ledger, with its statement as a hint."""

    def run(self):
        if self.text not in load().claims:
            message = self.inliner.reporter.error(
                f"no claim {self.text!r}", line=self.lineno
            )
            return [
                self.inliner.problematic(self.rawtext, self.rawtext, message)
            ], [message]
        return [_claim_link(self.env.docname, load().claims[self.text])], []


class ClaimGrid(SphinxDirective):
    """A tile for every claim, coloured by its verdict, and how many there are of each."""

    def run(self):
        _note_dependencies(self.env)
        found = harvest()
        tiles = nodes.bullet_list(classes=["claim-grid"])
        words = {name: _word(name, found) for name in load().claims}
        for name, claim in load().claims.items():
            link = _claim_link(self.env.docname, claim)
            link["classes"] += ["claim-tile", css_class(words[name])]
            link += nodes.inline("", f" {words[name]}", classes=["visually-hidden"])
            tiles += nodes.list_item("", nodes.paragraph("", "", link))
        return [tiles, _legend(Counter(words.values()))]


class Ledger(SphinxDirective):
    """Every claim by source, with its verdict or the chapter that will give it; every system."""

    def run(self):
        _note_dependencies(self.env)
        rows, found = load(), harvest()
        counts = Counter(_word(name, found) for name in rows.claims)
        sections = [_legend(counts)]
        for letter, source in rows.sources.items():
            section = _section(
                f"source-{letter.lower()}", f"{letter}: {source['title']}"
            )
            section += nodes.paragraph("", source["about"])
            mine = (
                claim for name, claim in rows.claims.items() if name[0] == letter
            )
            section.extend(self.row(claim, found.get(claim.id)) for claim in mine)
            sections.append(section)
        section = _section("systems", "Systems and methods the sources name")
        listing = nodes.definition_list(classes=["systems"])
        for system in rows.systems.values():
            term = nodes.term("", f"{system.id} {system.name}: {system.state}")
            text = nodes.definition("", nodes.paragraph("", system.statement))
            listing += nodes.definition_list_item("", term, text)
        section += listing
        return [*sections, section]

    def row(self, claim: Claim, found) -> nodes.container:
        """One claim."""
        word = word_of(found.verdict) if found else "open"
        row = nodes.container(
            classes=["ledger-row", css_class(word)], ids=[claim.id]
        )
        head = nodes.paragraph(classes=["verdict-word"])
        head += nodes.strong("", f"{claim.id} {word}")
        if found:
            head += nodes.Text(found.verdict.removeprefix(word))
        row += head
        row += nodes.paragraph("", claim.statement, classes=["verdict-claim"])
        where = nodes.paragraph(classes=["verdict-where"])
        title = load().chapters[claim.chapter]
        number = int(claim.chapter[:2])
        if found:
            figure = f"Measured: {found.figure}. " if found.figure else ""
            interval = f"Interval: {found.interval}. " if found.interval else ""
            margin = f"Margin: {found.margin}. " if found.margin else ""
            where += nodes.Text(f"{figure}{interval}{margin}")
            page = f"book/{claim.chapter}"
            uri = f"{_relative(self.env.docname, page)}#verdict-{claim.id}"
            where += nodes.reference(
                "", f"Chapter {number}, {title}", refuri=uri, internal=True
            )
        else:
            where += nodes.Text(
                f"Belongs to chapter {number}, {title}. To measure: "
            )
            where += nodes.Text(claim.measure[0].lower() + claim.measure[1:])
        row += where
        return row


def _section(name: str, title: str) -> nodes.section:
    return nodes.section("", nodes.title("", title), ids=[name], names=[name])


def _legend(counts: Counter) -> nodes.bullet_list:
    legend = nodes.bullet_list(classes=["claim-legend"])
    for word in (*WORDS, "open"):
        if counts[word]:
            swatch = nodes.inline(
                "", f"{counts[word]} {word}", classes=[css_class(word)]
            )
            legend += nodes.list_item("", nodes.paragraph("", "", swatch))
    return legend


def _word(name: str, found: dict) -> str:
    return word_of(found[name].verdict) if name in found else "open"


def _claim_link(docname: str, claim: Claim) -> nodes.reference:
    uri = f"{_relative(docname, LEDGER)}#{claim.id}"
    return nodes.reference(
        "", claim.id, refuri=uri, internal=True, reftitle=claim.statement
    )


def _relative(docname: str, page: str) -> str:
    return posixpath.relpath(page, posixpath.dirname(docname)) + ".html"


def _note_dependencies(env) -> None:
    for path in (BOOK / "claims.yml", *chapters()):
        env.note_dependency(str(path))


def setup(app: Sphinx) -> dict:
    app.add_role("claim", ClaimRole())
    app.add_directive("claim-grid", ClaimGrid)
    app.add_directive("ledger", Ledger)
    return {"parallel_read_safe": True}
