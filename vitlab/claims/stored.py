"""Stored audits: reading them, and what they say of a claim by its rule of today."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitlab.claims.ledger import AGREES, Claim, agreement

SCHEMA = Path(__file__).with_name("audit.schema.json")  # says what each field means
FORMAT = 1  # of the data


@dataclass(frozen=True)
class Other:
    """What a claim's rule says of another model than the book's."""

    model: str
    word: str
    figure: str
    agrees: bool


def read(path: Path) -> dict[str, Any]:
    """Reads the ``audit.json`` of an audit.

    Raises:
        OSError: There is no such file.
        ValueError: It is none, or no claim in it was measured.
    """
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


def others(audits: Iterable[Mapping[str, Any]], claim: Claim) -> list[Other]:
    """What stored audits say of a claim, by today's rule.

    Untrained models are left out, and those on which the book itself measured the claim.
    """
    results = []
    for audit in audits:
        name = audit["model"]["name"]
        own = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", claim.setting)
        if audit["model"]["untrained"] or own:
            continue
        for row in measured(audit):
            if row["id"] == claim.id:
                word = claim.decide(row["figure"], half_of(row))
                agrees = agreement(word, claim.word) in AGREES
                results.append(Other(name, word, claim.printed(row["figure"]), agrees))
    return results
