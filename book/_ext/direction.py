"""Which way verdicts changed with their rules: a claim's path of words, counts, and a table."""

from collections import Counter
from itertools import groupby

from book._ext.pages import from_template
from course.claims.card import css_class
from course.claims.ledger import Found
from course.claims.rows import load
from vitlab.claims.rules import NO, YES, word_of

# How far a word is from the claim, whatever the kind of qualified; the others are on no scale.
# "Not seen at this scale" was a word once.
DISTANCE = {"holds": 0, "qualified": 1, "weaker than claimed": 2, "not seen at this scale": 2,
            "too uncertain to tell": 3, "depends on training": 3, NO[1]: 4, NO[0]: 5}  # fmt: skip
WAYS = ("softened", "the same", "sharpened", "set apart")
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
    if first != last and not {first, last} <= DISTANCE.keys():
        return "set apart"
    step = DISTANCE.get(last, 0) - DISTANCE.get(first, 0)
    return WAYS[1 + (step > 0) - (step < 0)]


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
    rows = {a: {b: pairs[a, b] for b in order if pairs[a, b]} for a in order}
    short = {a: css_class(a).removeprefix("verdict-").replace("too", "uncertain") for a in order}
    return from_template("first_words.html", rows=rows, short=short, ways=WAYS, way=way)
