"""Sphinx directives ``ledger``, ``ledger-fields`` and ``claim-grid``, roles ``claim`` and ``count``.

They read ``book/claims.yml`` and the verdicts stored in the chapters' outputs; nothing is written
down a second time.
"""

import json
import posixpath
from collections import Counter

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from book._ext import ledger_page
from book._ext.ledger_counts import counts, summary
from book._ext.ledger_files import build
from book._ext.ledger_page import LEDGER, word
from course.claims import export
from course.claims.card import css_class
from course.claims.ledger import chapters, harvest
from course.claims.rows import BOOK, Claim, load


class ClaimRole(SphinxRole):
    """``{claim}`R08```: a link to the claim's card in the ledger, with its statement as a hint."""

    def run(self):
        if self.text not in load().claims:
            return _refused(self, f"no claim {self.text!r}")
        return [_claim_link(self.env.docname, load().claims[self.text])], []


class CountRole(SphinxRole):
    """``{count}`rules```: one of the ledger's numbers; ``ledger_counts`` says which there are."""

    def run(self):
        _note_dependencies(self.env)
        if self.text not in counts(harvest()):
            return _refused(self, f"no count {self.text!r}")
        return [nodes.Text(f"{counts(harvest())[self.text]:,}")], []


class ClaimGrid(SphinxDirective):
    """A tile for every claim, coloured by its verdict, and how many there are of each."""

    def run(self):
        _note_dependencies(self.env)
        found = harvest()
        tiles = nodes.bullet_list(classes=["claim-grid"])
        words = {name: word(name, found) for name in load().claims}
        for name, claim in load().claims.items():
            link = _claim_link(self.env.docname, claim)
            link["classes"] += ["claim-tile", css_class(words[name])]
            link += nodes.inline("", f" {words[name]}", classes=["visually-hidden"])
            tiles += nodes.list_item("", nodes.paragraph("", "", link))
        return [tiles, _html(ledger_page.chips(Counter(words.values())))]


class Ledger(SphinxDirective):
    """Every claim by topic, as a card; the sources; the systems that they name."""

    def run(self):
        _note_dependencies(self.env)
        rows, found, here = load(), harvest(), build(self.env.app)
        data = {claim["id"]: claim for claim in export.ledger(found, here)["claims"]}
        sections = [nodes.paragraph("", summary(found)), _html(ledger_page.filters(found))]
        for name, topic in rows.topics.items():
            section = _section(f"topic-{name}", topic.question)
            mine = [claim for claim in rows.claims.values() if claim.topic == name]
            words = Counter(word(claim.id, found) for claim in mine)
            cards = (
                ledger_page.entry(claim, found.get(claim.id), here, data[claim.id])
                for claim in mine
            )
            section += _html(ledger_page.chips(words, "topic-words") + "\n".join(cards))
            sections.append(section)
        return [*sections, self.sources(), self.systems(), _html(SCRIPT)]

    def sources(self) -> nodes.section:
        """The five documents, as far as they name themselves."""
        section = _section("sources", "The sources")
        for letter, source in load().sources.items():
            claims = [claim for claim in load().claims.values() if claim.id[0] == letter]
            lines = nodes.definition("", nodes.paragraph("", source["about"]))
            given = [source[field] for field in ("author", "date", "address") if field in source]
            said = f"{'; '.join(given)}. " if given else "It names no author, date or address. "
            lines += nodes.paragraph("", f"{said}{len(claims)} claims.")
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
        for name, about in schema["properties"]["claims"]["items"]["properties"].items():
            term = nodes.term("", "", nodes.literal("", name))
            text = nodes.definition("", nodes.paragraph("", about["description"]))
            listing += nodes.definition_list_item("", term, text)
        return [listing]


SCRIPT = f'<script defer src="{ledger_page.relative("_static/ledger.js")}"></script>'


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _section(name: str, title: str) -> nodes.section:
    return nodes.section("", nodes.title("", title), ids=[name], names=[name])


def _refused(role: SphinxRole, message: str) -> tuple[list, list]:
    error = role.inliner.reporter.error(message, line=role.lineno)
    return [role.inliner.problematic(role.rawtext, role.rawtext, error)], [error]


def _claim_link(docname: str, claim: Claim) -> nodes.reference:
    uri = f"{posixpath.relpath(LEDGER, posixpath.dirname(docname))}.html#{claim.id}"
    return nodes.reference("", claim.id, refuri=uri, internal=True, reftitle=claim.statement)


def _note_dependencies(env) -> None:
    for path in (BOOK / "claims.yml", *chapters()):
        env.note_dependency(str(path))


def setup(app: Sphinx) -> dict:
    app.add_role("claim", ClaimRole())
    app.add_role("count", CountRole())
    app.add_directive("claim-grid", ClaimGrid)
    app.add_directive("ledger", Ledger)
    app.add_directive("ledger-fields", LedgerFields)
    return {"parallel_read_safe": True}
