"""Sphinx roles ``claim`` and ``count`` and directive ``claim-grid``: the ledger on other pages."""

import posixpath
import re
from collections import Counter
from functools import cache

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from book._ext import ledger_page
from book._ext.ledger_counts import counts
from book._ext.ledger_page import LEDGER, word
from course.claims import others
from course.claims.card import css_class
from course.claims.ledger import chapters, harvest
from course.claims.rows import BOOK, Claim, load

CARD = re.compile(
    r'(<details class="verdict [^>]*id="verdict-(\w+)">.*?)</dl></details>',
    re.DOTALL,
)


@cache
def found() -> dict:
    """The verdicts of this build: reading all notebooks for each role would take long."""
    return harvest()


class ClaimRole(SphinxRole):
    """``{claim}`R08```: a link to the claim's card in the ledger, with its statement as a hint."""

    def run(self):
        if self.text not in load().claims:
            return refused(self, f"no claim {self.text!r}")
        return [_claim_link(self.env.docname, load().claims[self.text])], []


class CountRole(SphinxRole):
    """``{count}`rules```: one of the ledger's numbers; ``ledger_counts`` says which there are."""

    def run(self):
        note_dependencies(self.env)
        if self.text not in counts(found()):
            return refused(self, f"no count {self.text!r}")
        return [nodes.Text(f"{counts(found())[self.text]:,}")], []


class ClaimGrid(SphinxDirective):
    """A tile for every claim, coloured by its verdict, and how many there are of each."""

    def run(self):
        note_dependencies(self.env)
        tiles = nodes.bullet_list(classes=["claim-grid"])
        words = {name: word(name, found()) for name in load().claims}
        for name, claim in load().claims.items():
            link = _claim_link(self.env.docname, claim)
            link["classes"] += ["claim-tile", css_class(words[name])]
            link += nodes.inline("", f" {words[name]}", classes=["visually-hidden"])
            tiles += nodes.list_item("", nodes.paragraph("", "", link))
        return [tiles, html(ledger_page.chips(Counter(words.values())))]


def _claim_link(docname: str, claim: Claim) -> nodes.reference:
    uri = f"{posixpath.relpath(LEDGER, posixpath.dirname(docname))}.html#{claim.id}"
    return nodes.reference(
        "", claim.id, refuri=uri, internal=True, reftitle=claim.statement
    )


def refused(role: SphinxRole, message: str) -> tuple[list, list]:
    error = role.inliner.reporter.error(message, line=role.lineno)
    return [role.inliner.problematic(role.rawtext, role.rawtext, error)], [error]


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def note_dependencies(env) -> None:
    for path in (BOOK / "claims.yml", *chapters(), *others.files()):
        env.note_dependency(str(path))


def lead_to_the_ledger(
    app: Sphinx,
    page: str,
    template: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Gives a chapter's cards, which are stored in its notebook, a link that only pages can have."""
    ledger = f"{posixpath.relpath(LEDGER, posixpath.dirname(page))}.html"
    link = rf'<dt>Cite or repeat it</dt><dd><a href="{ledger}#\2">\2 in the ledger</a></dd>'
    if "body" in context:
        context["body"] = CARD.sub(rf"\1{link}</dl></details>", context["body"])


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", lead_to_the_ledger)
    app.add_role("claim", ClaimRole())
    app.add_role("count", CountRole())
    app.add_directive("claim-grid", ClaimGrid)
    return {"parallel_read_safe": True}
