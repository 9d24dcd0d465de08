"""The book's claims that are measured on any model, as its ledger has them, and stored audits."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vitlab.claims.rules import NO, UNCERTAIN, YES, Rule, word_of

LEDGER = Path(__file__).with_name("ledger.json")  # `python -m book.tools.sync_ledger` writes it
SCHEMA = Path(__file__).with_name("audit.schema.json")  # says what each field of an audit means
FORMAT = 1  # of an audit
AGREEMENTS = {
    "same word": "the rule gives this model the same word as the book's",
    "same side": "a different word, but the same yes or no",
    "other side": "yes where the book says no, or no where it says yes",
    "undecided": "the interval, or the book's, spans both yes and no",
}


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
    word: str
    verdict: str
    value: float
    low: float | None  # of a 95 % interval over trainings, where there were several
    high: float | None
    figure: str  # as the book prints it
    url: str  # from the book's root

    def decide(self, figure: float, half: float) -> str:
        """The word of the rule for a figure and half its interval, without the book's sentence."""
        return word_of(self.rule.decide(figure, half))

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
    if word == book and word != UNCERTAIN:
        return "same word"
    if any(word in side and book in side for side in (YES, NO)):
        return "same side"
    return "other side" if {word, book} <= {*YES, *NO} else "undecided"


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
