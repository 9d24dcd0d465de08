"""Which way verdicts changed with their rules: a claim's path of words, counts, and a table."""

from collections import Counter
from itertools import groupby

from course.claims.ledger import Found
from course.claims.rows import load
from vitlab.claims.rules import NO, YES, word_of

DISTANCE = {  # from the claim, of words without their kind; other words are on no scale
    "holds": 0,
    "qualified": 1,
    "weaker than claimed": 2,
    "not seen at this scale": 2,  # which the book once said
    "too uncertain to tell": 3,
    "depends on training": 3,
    "the opposite was seen here": 4,
    "refuted": 5,
}
WAYS = ("softened", "as at first", "sharpened", "set apart")
Paths = dict[str, list[str]]


def paths(found: dict[str, Found]) -> Paths:
    """The words of each claim with a verdict, from the first to that of its stored output."""
    words = {
        name: [*(change.verdict for change in load().claims[name].amended), word_of(now.verdict)]
        for name, now in found.items()
    }
    return {name: [word for word, _ in groupby(filter(None, row))] for name, row in words.items()}


def told(words: list[str]) -> list[tuple[str, str]]:
    """The line of a card whose word has changed."""
    return [("Its words so far", " → ".join(words))] if len(words) > 1 else []


def ends(paths: Paths) -> list[tuple[str, str]]:
    """The first word and the present one of each claim, without the kind of a qualified."""
    return [(row[0].partition(",")[0], row[-1].partition(",")[0]) for row in paths.values()]


def way(first: str, last: str) -> str:
    """Which of ``WAYS`` leads from one word to another."""
    if first == last:
        return "as at first"
    if not {first, last} <= DISTANCE.keys():
        return "set apart"
    step = DISTANCE[last] - DISTANCE[first]
    return "softened" if step < 0 else "sharpened" if step else "as at first"


def counts(paths: Paths) -> dict[str, int]:
    """Numbers for the role ``count``."""
    pairs, yes = ends(paths), ("holds", "qualified")
    ways = Counter(way(*pair) for pair in pairs)
    return {name: ways[name] for name in WAYS} | {
        "other-words": sum(len(words) > 1 for words in paths.values()),
        "first-no": sum(first in NO for first, _ in pairs),
        "no-to-yes": sum(first in NO and last in yes for first, last in pairs),
        "no-to-no": sum(first in NO and last in NO for first, last in pairs),
        "yes-to-less": sum(first in yes and last in (*NO, YES[-1]) for first, last in pairs),
    }


def table(paths: Paths) -> str:
    """A row for each first word: how many claims had it, and what they have now."""
    pairs = Counter(ends(paths))
    order = [*DISTANCE, *sorted({word for pair in pairs for word in pair} - DISTANCE.keys())]
    head = "".join(f'<th scope="col">{title}</th>' for title in ("first word", *WAYS))
    rows = [f"<thead><tr>{head}</tr></thead><tbody>"]
    for first in order:
        now = {last: pairs[first, last] for last in order if pairs[first, last]}
        cells = (
            "<br>".join(f"{now[last]} {last}" for last in now if way(first, last) == name)
            for name in WAYS
        )
        if now:
            row = "".join(f"<td>{cell}</td>" for cell in cells)
            rows.append(f'<tr><th scope="row">{first} ({sum(now.values())})</th>{row}</tr>')
    return f'<table class="table first-words">{"".join(rows)}</tbody></table>'
