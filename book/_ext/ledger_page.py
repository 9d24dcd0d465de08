"""The HTML of the ledger: its cards and its filters."""

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape

from book._ext.edition import address, in_this_edition
from book._ext.thumbnails import thumbnails
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
        "word": word_of(found.verdict) if found else "open",
        "basis": claim.basis,
        "scale": claim.scale,
        "part": load().topics[claim.topic].part,
        "chapter": claim.chapter,
        "source": claim.id[0],
        "amended": "yes" if claim.amended else "no",
        "inferred": "yes" if claim.inferred else "no",
    }
    about = "".join(
        f' data-{name}="{escape(value)}"' for name, value in facts.items()
    )
    return card.html(
        claim,
        found,
        claim.id,
        about,
        _picture(claim),
        _more(claim, found, build, data),
    )


def _picture(claim: Claim) -> str:
    small = thumbnails().get(claim.id)
    if small is None:
        return ""
    size = f'width="{small.width}" height="{small.height}"'
    source = relative(f"_static/thumbs/{small.file}")
    return f'<img class="thumb" src="{source}" {size} loading="lazy" alt="{escape(small.alt)}">'


def _more(
    claim: Claim, found: Found | None, build: Build, data: dict
) -> Iterator[tuple[str, str]]:
    """Where the claim is decided, how to repeat that, and how to cite it."""
    title = f"Chapter {int(claim.chapter[:2])}, {escape(load().chapters[claim.chapter])}"
    if found is None:
        yield "Where", f"{title}, will answer for it"
    else:
        name = f"book/{claim.chapter}"
        page = address(name, relative(f"{name}.html"))
        file = address(
            name, relative(f"_sources/{name}.ipynb"), f"_sources/{name}.ipynb"
        )
        where = (
            f'<a href="{page}#verdict-{claim.id}">{title}</a>' if page else title
        )
        yield (
            "Where",
            where
            if in_this_edition(name)
            else f"{where}, which this book leaves out",
        )
        commands = []
        for name in claim.study:
            kept = study(name)
            stored = relative(f"_static/results/{name}.json")
            commands.append(
                f'<code>{kept.command}</code> gave <a href="{stored}">{name}.json</a> '
                f"({kept.date}, commit {kept.commit}, {escape(kept.machine)})"
            )
        notebook = f'<a href="{file}">notebook</a>' if file else "notebook"
        commands.append(
            f"<code>python -m book.tools.execute book/{claim.chapter}.ipynb</code> "
            f"runs the chapter's {notebook}"
        )
        yield "Repeat it", "<br>".join(commands)
    if others := data["others"]:
        yield "Other models", _others(others)
    yield "Permalink", f'<a href="#{claim.id}">{escape(data["url"])}</a>'
    said = escape(
        bibtex(data, build)
    )  # no <pre>: the theme's script measures each of them
    yield (
        "Cite it",
        f'<details class="bibtex"><summary>BibTeX</summary><code>{said}</code></details>',
    )


def _others(others: list[dict]) -> str:
    """How many other models agree with the book, and what each gives."""
    agree = sum(other["agrees"] for other in others)
    each = (f"{o['model']} {o['figure']}, {o['word']}" for o in others)
    return f"{agree} of {len(others)} agree: {escape('; '.join(each))}"


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
    parts = dict.fromkeys(topic.part for topic in rows.topics.values())
    chapters = dict.fromkeys(claim.chapter for claim in rows.claims.values())
    menus = [
        _menu(
            "part", "Part of the model", ((part, part) for part in sorted(parts))
        ),
        _menu(
            "chapter",
            "Chapter",
            ((n, f"{int(n[:2])} {rows.chapters[n]}") for n in sorted(chapters)),
        ),
        _menu(
            "source",
            "Source",
            ((a, f"{a}: {s['title']}") for a, s in rows.sources.items()),
        ),
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
        for name, label in (
            ("amended", "rule amended"),
            ("inferred", "only implied"),
        )
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
    said = "".join(
        f'<option value="{escape(value)}" data-label="{escape(text)}">{escape(text)}</option>'
        for value, text in options
    )
    return f'<label>{label} <select name="{name}"><option value="">any</option>{said}</select></label>'


def chips(words: Counter, counted: str = "") -> str:
    """How many claims there are of each word."""
    said = "".join(
        f'<li class="verdict-chip {card.css_class(name)}" data-word="{name}">'
        f"<span>{words[name]}</span> {name}</li>"
        for name in (*WORDS, "open")
        if words[name]
    )
    return f'<ul class="claim-legend {counted}">{said}</ul>'


def relative(target: str) -> str:
    """An address of the site as the ledger page writes it."""
    return posixpath.relpath(target, posixpath.dirname(LEDGER))
