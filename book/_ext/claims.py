"""The ledger on other pages: roles ``claim``, ``count`` and ``measured``, and ``claim-grid``."""

import re
from collections import Counter
from functools import cache

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.osutil import relative_uri

from book._ext import direction
from book._ext.chapters import MAP
from book._ext.ledger_page import LEDGER, chips, in_order, page_of, word
from book._ext.pages import html, refused
from course.claims import others
from course.claims.card import css_class
from course.claims.ledger import Found, chapters, harvest
from course.claims.rows import BOOK, Claim, load
from vitlab.claims.rules import NO

MISSES = 20  # of so many 95 % intervals, one misses its truth
CARD = re.compile(r'(?s)(<details class="verdict [^>]*id="verdict-(\w+)">.*?)</dl></details>')


@cache
def verdicts() -> dict[str, Found]:
    return harvest()


def counts(found: dict[str, Found]) -> dict[str, int]:
    """Numbers that pages say of the ledger, by name, of which ``{count}`` takes one."""
    claims, everything = load().of_documents(), found
    found = {name: verdict for name, verdict in found.items() if name in claims}
    answered = [claims[name] for name in found]
    ruled = [claim for claim in answered if claim.since]
    intervals = sum(len(verdict.seeds) > 1 for verdict in found.values())
    single = [claims[name] for name, verdict in found.items() if len(verdict.seeds) == 1]
    return {
        "claims": len(claims),
        "later": len(load().claims) - len(claims),
        "later-answered": len(everything) - len(found),
        "answered": len(answered),
        "rules": len(ruled),
        "before": sum(claim.before for claim in ruled),
        "together": sum(not claim.before for claim in ruled),
        "amended": sum(bool(claim.amended) for claim in ruled),
        "intervals": intervals,
        "misses": round(intervals / MISSES),
        "one-figure": sum(claim.basis == "measured" for claim in single),
        "proofs": sum(claim.basis == "proved" for claim in answered),
        "inferred": sum(bool(claim.inferred) for claim in claims.values()),
        **direction.counts(direction.paths(found)),
    }


def summary(found: dict[str, Found]) -> str:
    """What the book found, in words; what is only implied, or of later papers, counts apart."""
    number = counts(found)
    stated, implied = Counter[str](), Counter[str]()
    for name, claim in load().of_documents().items():
        (implied if claim.inferred else stated)[word(name, found)] += 1
    refuted, opposite = (stated[name] for name in NO)
    of_implied, later = "; ".join(f"{n} {name}" for name, n in implied.items()), number["later"]
    return (
        f"{number['answered']} of {number['claims']} claims have a verdict. Of those that the "
        f"sources state, {refuted} are refuted, and of {opposite} the opposite was seen here. "
        f"{number['inferred']} are only implied by a source, and so counted apart "
        f"({of_implied}). Of later papers' {later} claims {number['later-answered']} have one."
    )


class ClaimRole(SphinxRole):
    """``{claim}`R08```: a link to the claim's card in the ledger, with its statement as a hint."""

    def run(self):
        if self.text not in load().claims:
            return refused(self, f"no claim {self.text!r}")
        return [_link(self.env.docname, load().claims[self.text])], []


class NumberRole(SphinxRole):
    """``{count}`rules```, see :func:`counts`; ``{measured}`R65```, a claim's figure."""

    def run(self):
        note_dependencies(self.env)
        numbers = {name: verdict.figure for name, verdict in verdicts().items()}
        if self.name == "count":
            numbers = {name: f"{number:,}" for name, number in counts(verdicts()).items()}
        if self.text not in numbers:
            return refused(self, f"no {self.name} {self.text!r}")
        return [nodes.Text(numbers[self.text])], []


class ClaimGrid(SphinxDirective):
    """How many claims of the documents, or of later papers, have each word: a tile a claim."""

    optional_arguments = 1  # "later"

    def run(self):
        note_dependencies(self.env)
        claims, documents = load().claims, load().of_documents()
        shown = claims.keys() - documents if self.arguments else documents
        words, parts = {name: word(name, verdicts()) for name in claims if name in shown}, []
        for kind, count in in_order(Counter(words.values())).items():
            tiles = nodes.bullet_list(classes=["claim-grid"])
            for name in (name for name in words if words[name] == kind):
                link = _link(self.env.docname, claims[name])
                link["classes"] += ["claim-tile", css_class(kind)]
                link[0] = nodes.inline("", f"{name}: {kind}", classes=["visually-hidden"])
                tiles += nodes.list_item("", nodes.paragraph("", "", link))
            parts += [html(chips(Counter({kind: count}))), tiles]
        return parts


class FirstWords(SphinxDirective):
    """The words that verdicts had first, beside those that they have now."""

    def run(self):
        note_dependencies(self.env)
        mine = load().of_documents().keys() & verdicts().keys()
        return [html(direction.table(direction.paths({n: verdicts()[n] for n in mine})))]


def _link(page: str, claim: Claim) -> nodes.reference:
    uri = f"{relative_uri(page, f'{LEDGER}.html')}#{claim.id}"
    return nodes.reference("", claim.id, refuri=uri, internal=True, reftitle=claim.statement)


def note_dependencies(env: BuildEnvironment) -> None:
    for path in (MAP, BOOK / "claims.yml", *chapters(), *others.files()):
        env.note_dependency(str(path))


def lead_to_their_pages(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Gives a chapter's cards, stored in its notebook, their path and a link to their page."""
    paths = direction.paths(verdicts())

    def longer(card: re.Match) -> str:
        address = relative_uri(page, f"{page_of(card[2])}.html")
        link = f'<a href="{address}">the page of {card[2]}</a>'
        lines = [*direction.told(paths.get(card[2], [])), ("Paper, citation", link)]
        listed = "".join(f"<dt>{heading}</dt><dd>{text}</dd>" for heading, text in lines)
        return f"{card[1]}{listed}</dl></details>"

    if "body" in context:
        context["body"] = CARD.sub(longer, context["body"])


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", lead_to_their_pages)
    for name, role in (("claim", ClaimRole), ("count", NumberRole), ("measured", NumberRole)):
        app.add_role(name, role())
    app.add_directive("claim-grid", ClaimGrid)
    app.add_directive("first-words", FirstWords)
