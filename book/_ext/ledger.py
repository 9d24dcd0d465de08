"""Sphinx directives ``ledger`` and ``ledger-fields``.

They read ``book/claims.yml`` and the verdicts stored in the chapters' outputs; nothing is written
down a second time.
"""

import json
from collections import Counter

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book._ext import ledger_page
from book._ext.claims import html, note_dependencies
from book._ext.ledger_counts import summary
from book._ext.ledger_files import build
from course.claims import export
from course.claims.ledger import harvest
from course.claims.rows import load

SCRIPT = (
    f'<script defer src="{ledger_page.relative("_static/ledger.js")}"></script>'
)


class Ledger(SphinxDirective):
    """Every claim by topic, as a card; the sources; the systems that they name."""

    def run(self):
        note_dependencies(self.env)
        rows, found, here = load(), harvest(), build(self.env.app)
        data = {
            claim["id"]: claim for claim in export.ledger(found, here)["claims"]
        }
        sections = [
            nodes.paragraph("", summary(found)),
            html(ledger_page.filters(found)),
        ]
        for name, topic in rows.topics.items():
            section = _section(f"topic-{name}", topic.question)
            mine = [claim for claim in rows.claims.values() if claim.topic == name]
            words = Counter(ledger_page.word(claim.id, found) for claim in mine)
            cards = (
                ledger_page.entry(claim, found.get(claim.id), here, data[claim.id])
                for claim in mine
            )
            section += html(
                ledger_page.chips(words, "topic-words") + "\n".join(cards)
            )
            sections.append(section)
        return [*sections, self.sources(), self.systems(), html(SCRIPT)]

    def sources(self) -> nodes.section:
        """The five documents, as far as they name themselves."""
        section = _section("sources", "The sources")
        for letter, source in load().sources.items():
            claims = [
                claim for claim in load().claims.values() if claim.id[0] == letter
            ]
            lines = nodes.definition("", nodes.paragraph("", source["about"]))
            given = [
                f"{field.capitalize()}: {source[field]}."
                for field in ("author", "date", "address")
                if field in source
            ] or ["It names no author, date or address."]
            lines += nodes.paragraph("", f"{' '.join(given)} {len(claims)} claims.")
            listing = nodes.definition_list(ids=[f"source-{letter.lower()}"])
            term = nodes.term("", f"{letter}: {source['title']}")
            listing += nodes.definition_list_item("", term, lines)
            section += listing
        return section

    def systems(self) -> nodes.section:
        """The models and methods that the sources name."""
        section = _section("systems", "Systems and methods the sources name")
        listing = nodes.definition_list(classes=["systems"])
        for system in load().systems.values():
            term = nodes.term("", f"{system.id} {system.name}: {system.state}")
            text = nodes.definition("", nodes.paragraph("", system.statement))
            listing += nodes.definition_list_item("", term, text)
        section += listing
        return section


class LedgerFields(SphinxDirective):
    """What each field of a claim in ``ledger.json`` means, from its schema."""

    def run(self):
        self.env.note_dependency(str(export.SCHEMA))
        schema = json.loads(export.SCHEMA.read_text(encoding="utf-8"))
        listing = nodes.definition_list(classes=["ledger-fields"])
        claim = schema["properties"]["claims"]["items"]
        for name, about in claim["properties"].items():
            term = nodes.term("", "", nodes.literal("", name))
            text = nodes.definition("", nodes.paragraph("", about["description"]))
            listing += nodes.definition_list_item("", term, text)
        return [listing]


def _section(name: str, title: str) -> nodes.section:
    return nodes.section("", nodes.title("", title), ids=[name], names=[name])


def setup(app: Sphinx) -> dict:
    app.add_directive("ledger", Ledger)
    app.add_directive("ledger-fields", LedgerFields)
    return {"parallel_read_safe": True}
