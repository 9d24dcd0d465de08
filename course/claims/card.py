"""A verdict's card: what a reader needs to cite a claim, as text and as HTML."""

import textwrap
from html import escape

from course.claims.ledger import Found
from course.claims.rows import BASES, SCALES, Claim, load
from course.claims.rules import word_of


def lines(claim: Claim, found: Found) -> list[tuple[str, str]]:
    """The card's headings and texts, without the empty ones, from the verdict down."""
    source = load().sources[claim.id[0]]
    when = "before" if claim.before else "together with"
    rows = [
        ("verdict", found.verdict),
        ("measured", f"{found.figure}: {claim.measure}" if found.figure else ""),
        ("interval", found.interval),
        ("on", claim.on),
        ("rule", str(claim.rule)),
        ("because", claim.because),
        ("one-sided", claim.one_sided),
        ("margin", found.margin),
        ("written", f"{claim.since}, {when} its first verdict" if claim.since else ""),
        *(("amended", f"{a.when}: {_was(a.was, a.verdict)}. {a.because}") for a in claim.amended),
        ("basis", f"{BASES[claim.basis]}; {SCALES[claim.scale]}"),
        ("source", f"{source['title']}{f', {claim.place}' if claim.place else ''}"),
        ("inferred", claim.inferred),
    ]
    return [(heading, text) for heading, text in rows if text]


def _was(before: str, verdict: str) -> str:
    return f"it was '{before}'" + (f", and the verdict '{verdict}'" if verdict else "")


def text(claim: Claim, rows: list[tuple[str, str]]) -> str:
    """The claim and the lines of a card, for a terminal and for nbval to compare."""
    return "\n".join(
        textwrap.fill(said, 96, initial_indent=f"{heading:10}", subsequent_indent=" " * 10)
        for heading, said in [(claim.id, claim.statement), *rows]
    )


def html(claim: Claim, found: Found, anchor: str, links: str = "") -> str:
    """The card as a line that opens, without any script. ``links`` is HTML for its end."""
    word = word_of(found.verdict)
    rows = "".join(
        f"<dt>{heading}</dt><dd>{escape(said)}</dd>" for heading, said in lines(claim, found)
    )
    return (
        f'<details class="verdict {css_class(word)}" id="{anchor}"><summary>'
        f'<span class="verdict-id">{claim.id}</span> '
        f'<strong class="verdict-word">{word}</strong> '
        f'<span class="verdict-claim">{escape(claim.statement)}</span></summary>'
        f"<dl>{rows}</dl>{links}</details>"
    )


def css_class(word: str) -> str:
    """The style class of a verdict's word, or of ``"open"``: its first word but "the"."""
    return "verdict-" + word.removeprefix("the ").split()[0].strip(",")
