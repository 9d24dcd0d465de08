"""The book's claims that are measured on any model, as its ledger has them, and stored audits."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vitlab.claims.rules import NO, QUALIFIED, WEAKER, Rule, word_of

LEDGER = Path(__file__).with_name("ledger.json")  # `python -m book.tools.sync_ledger` writes it
SCHEMA = Path(__file__).with_name("audit.schema.json")  # says what each field of an audit means
FORMAT = 2  # of an audit
AGREEMENTS = {
    "same word": "the rule gives this model the same word as the book's",
    "same side": "another word; but both say that the claim holds, if qualified, or both deny it",
    "other sign": "qualified as in the book, but for a figure that is certainly of the other sign",
    "other side": "one holds, if qualified, the other is weaker or denied; or weaker and denied",
    "undecided": "the interval, or the book's, spans both yes and no",
}
AGREE = ("same word", "same side")
SIDES = (("holds", *QUALIFIED), (WEAKER,), NO)


@dataclass(frozen=True)
class Claim:
    """A claim, and what the book found on its own model; the figures are in ``unit``."""

    id: str
    statement: str
    question: str  # by which it is asked of any model
    measure: str  # what the figure means
    setting: str  # the book's models and data
    because: str  # why the rule's thresholds are where they are
    unit: str
    format: str  # of the figure, as in Python's f-strings
    rule: Rule
    proved: bool  # so that the word says little of a model: it is not counted
    word: str
    verdict: str
    value: float
    low: float | None  # of a 95 % interval over trainings, where there were several
    high: float | None
    figure: str  # as the book prints it
    url: str  # from the book's root

    def judge(self, row: Mapping[str, Any]) -> dict[str, str | None]:
        """What the rule says of a figure and its interval: no sentence, which is the book's."""
        figure, half = row["figure"], half_of(row)
        if figure is None:
            return {"printed": "", "word": None, "agreement": None}
        word = word_of(self.rule.decide(figure, half))
        found = agreement(word, self.word)
        low, high = (self.value if end is None else end for end in (self.low, self.high))
        turned = figure + half < 0 < low or high < 0 < figure - half
        if turned and found in AGREE and word in QUALIFIED:
            found = "other sign"
        return {"printed": self.printed(figure), "word": word, "agreement": found}

    def printed(self, x: float) -> str:
        """A figure with the digits that the book prints, and its unit."""
        return f"{self.rule.printed(x, self.format)} {self.unit}".rstrip()


@cache
def claims() -> dict[str, Claim]:
    """The claims that are measured on any model, by id, in the ledger's order."""
    rows = json.loads(LEDGER.read_text(encoding="utf-8"))["claims"]
    for row in rows:
        rule = row["rule"]
        cases = tuple((case["sign"], case["threshold"], case["verdict"]) for case in rule["cases"])
        row["rule"] = Rule(cases, rule["otherwise"], rule["uncertain"])
    return {row["id"]: Claim(**row) for row in rows}


def agreement(word: str, book: str) -> str:
    """One of ``AGREEMENTS``, for the words of another model and of the book's."""
    mine, theirs = ([side for side in SIDES if one in side] for one in (word, book))
    if not mine or not theirs:
        return "undecided"
    if mine != theirs:
        return "other side"
    return "same word" if word == book else "same side"


def read(path: Path) -> dict[str, Any]:
    """The ``audit.json`` of an audit; ValueError where it is none, or no claim was measured."""
    try:
        audit: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if audit["format"] != FORMAT:
            raise ValueError(f"its format is {audit['format']!r}, not {FORMAT}")
        if not audit["states"]["measured"]:
            raise ValueError("no claim in it was measured")
        for row in measured(audit):
            float(row["figure"]), half_of(row)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"expected a stored audit at {path}: {error!r}") from error
    return audit


def measured(audit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims of an audit that have a figure."""
    return [row for row in audit["claims"] if row["state"] == "measured"]


def half_of(row: Mapping[str, Any]) -> float:
    """Half the interval of a claim's figure; 0 where there is none."""
    return 0.0 if row["low"] is None else (row["high"] - row["low"]) / 2
