"""The HTML of the ledger: its cards, on its page and on each claim's own, and its filters."""

from collections import Counter
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

from sphinx.util.osutil import relative_uri

from book._ext import direction
from book._ext.edition import address, in_this_edition
from book._ext.figures import STORED, thumbnails
from book._ext.pages import from_template
from course.claims import card
from course.claims.ledger import Found
from course.claims.rows import BASES, SCALES, Claim, load
from course.results import study
from vitlab.claims.rules import WORDS, word_of

LEDGER = "book/ledger"
LARGE = "dinov2_small_saliency"
PRESETS = {  # what one tap shows
    "All refutations and opposites": ["refuted", "the opposite was seen here"],
    "All that holds": ["holds"],
}


def word(name: str, found: dict[str, Found]) -> str:
    """The word of a claim's verdict, or open."""
    return word_of(found[name].verdict) if name in found else "open"


def page_of(name: str) -> str:
    """The page of a claim, which its permalink names."""
    return f"book/claims/{name}"


def paper_of(claim: Claim) -> dict[str, Any]:
    """The paper that a claim is about, or the nearest one, with its address; empty without one."""
    paper = load().papers.get(claim.of.get("paper") or claim.of.get("nearest", ""), {})
    doi, arxiv = (paper.get(name) for name in ("doi", "arxiv"))
    where = f"https://doi.org/{doi}" if doi else f"https://arxiv.org/abs/{arxiv}"
    return paper and paper | {"url": where}


def entry(claim: Claim, found: Found | None, data: dict, page: str = LEDGER) -> str:
    """A claim's card: on its own page open; on the ledger's with facts to filter by, and without
    reasons and history, which would make that page a fifth heavier.

    ``data`` is what ``export.ledger`` says of it.
    """
    large = next((other for other in data["others"] if other["model"] == LARGE), None)
    facts = {name: data[name] for name in ("word", "basis", "scale", "part", "chapter", "source")}
    facts |= {name: "yes" if data[name] else "no" for name in ("amended", "disputed", "inferred")}
    facts["large"] = "" if large is None else "agrees" if large["agrees"] else "differs"
    attributes = "".join(f' data-{name}="{escape(value)}"' for name, value in facts.items())
    style, more = "thumb", _more(claim, found, data, page)
    if page != LEDGER:
        attributes, style = " open", "dark-light"  # shown on paper, too
    else:
        claim = replace(claim, because="", one_sided="", floor="", since=None, amended=())
        found = found and replace(found, margin="")
    copy = thumbnails().get(claim.id)
    image = copy.tag(relative_uri(page, STORED), f'class="{style}" ') if copy else ""
    mark = f"at 22 M: {escape(large['figure'])}" if large else ""
    return card.html(claim, found, claim.id, attributes, image, more, mark)


def _more(claim: Claim, found: Found | None, data: dict, page: str) -> str:
    """Which paper the claim is about, where it is decided, and how to repeat that."""
    name, source = f"book/{claim.chapter}", f"_sources/book/{claim.chapter}.ipynb"
    to, own = partial(relative_uri, page), page != LEDGER
    return from_template(
        "ledger_entry.html",
        claim=claim,
        found=found,
        data=data,
        title=f"Chapter {int(claim.chapter[:2])}, {escape(load().chapters[claim.chapter])}",
        page=address(name, to(f"{name}.html")),
        here=in_this_edition(name),
        notebook=address(name, to(source), source),
        told=direction.told(direction.paths({claim.id: found})[claim.id]) if found else [],
        studies=[(study(of), to(f"_static/results/{of}.json")) for of in claim.study],
        paper=paper_of(claim),
        own=own,
        other=to(f"{LEDGER if own else page_of(claim.id)}.html"),
    )


def filters(found: dict[str, Found]) -> str:
    """The form that ``ledger.js`` shows, and without which the page does as well."""
    rows = load()
    counts = Counter(word(name, found) for name in rows.claims)
    parts = sorted({topic["part"] for topic in rows.topics.values()})
    chapters = sorted({claim.chapter for claim in rows.claims.values()})
    sources = {letter: f"{letter}: {source['title']}" for letter, source in rows.sources.items()}
    menus = [
        ("part", "Part of the model", dict(zip(parts, parts, strict=True))),
        ("chapter", "Chapter", {n: f"{int(n[:2])} {rows.chapters[n]}" for n in chapters}),
        ("source", "Source", sources),
        ("basis", "Kind of evidence", BASES),
        ("scale", "How far it reaches", SCALES),
        ("large", "At 22 million parameters", {"agrees": "agrees", "differs": "another word"}),
    ]
    values = {"presets": PRESETS, "menus": menus, "css_class": card.css_class}
    return from_template("ledger_filter.html", words=in_order(counts), **values)


def chips(words: Counter, style: str = "") -> str:
    """How many claims there are of each word."""
    values = {"style": style, "css_class": card.css_class}
    return from_template("chips.html", words=in_order(words), **values)


def in_order(words: Counter) -> dict[str, int]:
    return {name: words[name] for name in (*WORDS, "open") if words[name]}
