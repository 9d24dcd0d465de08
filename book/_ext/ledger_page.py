"""The HTML of the ledger: its cards and its filters."""

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape

from book._ext.edition import address, in_this_edition
from book._ext.figures import thumbnails
from course.claims import card
from course.claims.cite import Build, bibtex
from course.claims.ledger import Found
from course.claims.rows import BASES, SCALES, Claim, load
from course.results import study
from vitlab.claims.rules import WORDS, word_of

LEDGER = "book/ledger"
PRESETS = {  # what one tap shows
    "All refutations and opposites": ["refuted", "the opposite was seen here"],
    "All that holds": ["holds"],
}


def word(name: str, found: dict[str, Found]) -> str:
    """The word of a claim's verdict, or open."""
    return word_of(found[name].verdict) if name in found else "open"


def entry(claim: Claim, found: Found | None, build: Build, data: dict) -> str:
    """A claim's card on the ledger page. ``data`` is what ``export.ledger`` says of it."""
    facts = {
        "word": data["word"],
        "basis": claim.basis,
        "scale": claim.scale,
        "part": load().topics[claim.topic].part,
        "chapter": claim.chapter,
        "source": claim.id[0],
        "amended": "yes" if claim.amended else "no",
        "inferred": "yes" if claim.inferred else "no",
    }
    attributes = "".join(f' data-{name}="{escape(value)}"' for name, value in facts.items())
    image = ""
    if copy := thumbnails().get(claim.id):
        source = relative(f"_static/thumbs/{copy.file}")
        size = f'width="{copy.width}" height="{copy.height}"'
        image = f'<img class="thumb" src="{source}" {size} loading="lazy" alt="{escape(copy.alt)}">'
    more = _more(claim, found, build, data)
    return card.html(claim, found, claim.id, attributes, image, more)


def _more(claim: Claim, found: Found | None, build: Build, data: dict) -> Iterator[tuple[str, str]]:
    """Where the claim is decided, how to repeat that, and how to cite it."""
    title = f"Chapter {int(claim.chapter[:2])}, {escape(load().chapters[claim.chapter])}"
    if found is None:
        yield "Where", f"{title}, will answer for it"
    else:
        name = f"book/{claim.chapter}"
        page = address(name, relative(f"{name}.html"))
        where = f'<a href="{page}#verdict-{claim.id}">{title}</a>' if page else title
        yield "Where", where + ", which this book leaves out" * (not in_this_edition(name))
        yield "Repeat it", "<br>".join(_commands(claim))
    if others := data["others"]:
        agree = sum(other["agrees"] for other in others)
        words = "; ".join(f"{o['model']} {o['figure']}, {o['word']}" for o in others)
        yield "Other models", f"{agree} of {len(others)} agree: {escape(words)}"
    yield "Permalink", f'<a href="#{claim.id}">{escape(data["url"])}</a>'
    entry = escape(bibtex(data, build))  # no <pre>: the theme's script measures each of them
    folded = f"<summary>BibTeX</summary><code>{entry}</code>"
    yield "Cite it", f'<details class="bibtex">{folded}</details>'


def _commands(claim: Claim) -> Iterator[str]:
    """What repeats the studies of a claim, and its chapter."""
    for name in claim.study:
        results = study(name)
        file = relative(f"_static/results/{name}.json")
        yield (
            f'<code>{results.command}</code> gave <a href="{file}">{name}.json</a> '
            f"({results.date}, commit {results.commit}, {escape(results.machine)})"
        )
    source = f"_sources/book/{claim.chapter}.ipynb"
    file = address(f"book/{claim.chapter}", relative(source), source)
    notebook = f'<a href="{file}">notebook</a>' if file else "notebook"
    command = f"python -m book.tools.execute book/{claim.chapter}.ipynb"
    yield f"<code>{command}</code> runs the chapter's {notebook}"


def filters(found: dict[str, Found]) -> str:
    """The form that ``ledger.js`` shows, and without which the page does as well."""
    rows = load()
    words = Counter(word(name, found) for name in rows.claims)
    chips = "".join(
        f'<label class="verdict-chip {card.css_class(name)}"><input type="checkbox" name="word" '
        f'value="{name}"> <span data-count>{words[name]}</span> {name}</label>'
        for name in (*WORDS, "open")
        if words[name]
    )
    parts = sorted({topic.part for topic in rows.topics.values()})
    chapters = sorted({claim.chapter for claim in rows.claims.values()})
    numbered = ((name, f"{int(name[:2])} {rows.chapters[name]}") for name in chapters)
    sources = ((letter, f"{letter}: {s['title']}") for letter, s in rows.sources.items())
    menus = [
        _menu("part", "Part of the model", zip(parts, parts, strict=True)),
        _menu("chapter", "Chapter", numbered),
        _menu("source", "Source", sources),
        _menu("basis", "Kind of evidence", BASES.items()),
        _menu("scale", "How far it reaches", SCALES.items()),
    ]
    presets = "".join(
        f"<button type=\"button\" data-words='{'|'.join(names)}'>{label}</button>"
        for label, names in PRESETS.items()
    )
    boxes = "".join(
        f'<label><input type="checkbox" name="{name}" value="yes"> {label} '
        f"(<span data-count></span>)</label>"
        for name, label in (("amended", "rule amended"), ("inferred", "only implied"))
    )
    return (
        '<form class="ledger-filter" role="search" aria-label="Claims" hidden>'
        '<p class="filter-text"><label>Find <input type="search" name="text" '
        f'placeholder="words"></label>{presets}'
        '<button type="reset">Show all</button></p>'
        f"<fieldset><legend>Word</legend>{chips}</fieldset>"
        f'<details class="filter-more"><summary>More filters</summary>{"".join(menus)}'
        f"<p>{boxes}</p></details>"
        '<p><output aria-live="polite"></output></p></form>'
    )


def _menu(name: str, label: str, options: Iterable[tuple[str, str]]) -> str:
    entries = "".join(
        f'<option value="{escape(value)}" data-label="{escape(text)}">{escape(text)}</option>'
        for value, text in options
    )
    menu = f'<select name="{name}"><option value="">any</option>{entries}</select>'
    return f"<label>{label} {menu}</label>"


def chips(words: Counter, style: str = "") -> str:
    """How many claims there are of each word."""
    entries = "".join(
        f'<li class="verdict-chip {card.css_class(name)}" data-word="{name}">'
        f"<span>{words[name]}</span> {name}</li>"
        for name in (*WORDS, "open")
        if words[name]
    )
    return f'<ul class="claim-legend {style}">{entries}</ul>'


def relative(target: str, page: str = LEDGER) -> str:
    """An address of the site as a page writes it."""
    return posixpath.relpath(target, posixpath.dirname(page))
