"""A claim's card: what a reader needs to cite it, as text and as HTML."""

import re
import textwrap
from functools import cache, partial
from html import escape

from course.claims.ledger import Found, harvest
from course.claims.rows import BASES, SCALES, Amendment, Claim, load
from vitlab.claims.rules import word_of

# What a page says in place of the short headings that a terminal and nbval get.
HEADINGS = {
    "verdict": "Verdict",
    "open": "To be measured",
    "measured": "Measured",
    "interval": "95 % interval",
    "readings": "Wherever training ends",
    "figure": "Figure",
    "setting": "Models and data",
    "rule": "Rule",
    "because": "Why these thresholds",
    "one-sided": "Why it cannot say 'holds'",
    "floor": "Why it cannot say no",
    "margin": "How near a threshold",
    "written": "History of the rule",
    "amended": "Rule amended",
    "basis": "Kind of evidence",
    "source": "Source",
    "inferred": "Only implied",
    "disputed": "Disputed",
}
lowered = partial(re.compile(r"\b(\w{1,2})_([A-Za-z]+|\d)").sub, r"\1<sub>\2</sub>")  # as in W_Q
FINDING = ("verdict", "open", "measured", "interval", "readings")  # the first lines: what was found


def lines(claim: Claim, found: Found | None) -> list[tuple[str, str]]:
    """The card's headings and texts, without the empty ones, from the verdict down.

    A claim without a verdict says what will be measured.
    """
    source = load().sources[claim.id[0]]
    when = "before" if claim.before else "together with"
    shown = found or Found(claim.id)
    rows = [
        ("verdict", shown.verdict),
        ("open", "" if found else claim.measure),
        ("measured", f"{shown.figure}: {claim.measure}" if shown.figure else ""),
        ("interval", shown.interval),
        ("readings", shown.readings),
        ("setting", claim.setting),
        ("rule", str(claim.rule) if claim.rule else ""),
        ("because", claim.because),
        ("one-sided", claim.one_sided),
        ("floor", claim.floor),
        ("margin", shown.margin),
        ("written", f"{claim.since}, {when} its first verdict" if claim.since else ""),
        *(("amended", _amendment(change)) for change in claim.amended),
        ("basis", f"{BASES[claim.basis]}; {SCALES[claim.scale]}"),
        ("source", f"{source['title']}{f', {claim.place}' if claim.place else ''}"),
        ("inferred", claim.inferred),
        *(("disputed", f"{d.by}, {d.when}: {d.reply} Answer: {d.answer}") for d in claim.disputed),
    ]
    return [(heading, text) for heading, text in rows if text]


def _amendment(change: Amendment) -> str:
    verdict = f", and the verdict '{change.verdict}'" if change.verdict else ""
    return f"{change.when}: it was '{change.was.rstrip('.')}'{verdict}. {change.because}"


def text(claim: Claim, rows: list[tuple[str, str]]) -> str:
    """The claim and the lines of a card, for a terminal and for nbval to compare."""
    return "\n".join(
        textwrap.fill(line, 96, initial_indent=f"{heading:10}", subsequent_indent=" " * 10)
        for heading, line in [(claim.id, claim.statement), *rows]
    )


@cache
def without_answer(name: str) -> list[tuple[str, str]]:
    """Lines of a claim's card for an exam: its word, what was measured, on what, and the rule."""
    rows = lines(load().claims[name], harvest().get(name))
    ends = {"verdict": ":", **dict.fromkeys(("measured", "setting", "rule"), " Also shown:")}
    return [(head, said.partition(ends[head])[0]) for head, said in rows if head in ends]


def html(
    claim: Claim,
    found: Found | None,
    anchor: str,
    about: str = "",
    picture: str = "",
    more: str = "",
    mark: str = "",
) -> str:
    """The card as a line that opens, without any script.

    The ledger's cards say more than a chapter's: ``about`` is HTML for the attributes of the
    element, ``picture`` for a figure behind what was found, ``more`` for further headings,
    ``mark`` a word beside the verdict's.
    """
    word = word_of(found.verdict) if found else "open"
    rows = [(name, lowered(escape(text))) for name, text in lines(claim, found)]
    if found:  # of the interval the heading says that it is one of 95 %
        verdict = f"<strong>{word}</strong>{escape(found.verdict.removeprefix(word))}"
        shown = {"verdict": verdict, "interval": escape(found.interval.replace("(95 %, ", "("))}
        rows = [(name, shown.get(name, text)) for name, text in rows]
    if picture:
        rows.insert(sum(name in FINDING for name, _ in rows), ("figure", picture))
    listed = "".join(f"<dt>{HEADINGS[name]}</dt><dd>{text}</dd>" for name, text in rows)
    marks = ("only implied" * bool(claim.inferred), "disputed" * bool(claim.disputed), mark)
    marked = "".join(f'<span class="verdict-mark">{each}</span> ' for each in marks if each)
    return (
        f'<details class="verdict {css_class(word)}" id="{anchor}"{about}><summary>'
        f'<span class="verdict-id">{claim.id}</span> '
        f'<strong class="verdict-word">{word}</strong> {marked}'
        f'<span class="verdict-claim">{lowered(escape(claim.statement))}</span></summary>'
        f"<dl>{listed}{more}</dl></details>"
    )


def css_class(word: str) -> str:
    """The style class of a verdict's word, or of ``"open"``: its first word but "the"."""
    return "verdict-" + word.removeprefix("the ").split()[0].strip(",")
