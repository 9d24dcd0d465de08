"""Stored audits: reading them, and counting over models what agrees with the book."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minivit.audit.ledger import AGREES, Claim, agreement
from minivit.audit.report import FORMAT


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
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise ValueError(f"its format is {found['format']!r}, and {FORMAT} is read")
        if not found["states"]["measured"]:
            raise ValueError("no claim in it was measured")
        for row in found["claims"]:
            row["id"], row["state"], row["figure"], row["low"], row["high"], row["seconds"]
        found["model"]["name"], found["model"]["weights"], found["model"]["untrained"]
        found["images"]["source"], found["images"]["sha256"]
        found["beside"], found["seed"], found["count"]
    except (ValueError, TypeError, KeyError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"expected a stored audit at {path}: {why}") from error
    return dict(found)


def others(audits: Iterable[Mapping[str, Any]], claim: Claim) -> list[Other]:
    """What stored audits say of a claim, by today's rule.

    Untrained models are left out, and those on which the book itself measured the claim.
    """
    found = []
    for audit in audits:
        name = audit["model"]["name"]
        own = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", claim.setting)
        if audit["model"]["untrained"] or own:
            continue
        for row in audit["claims"]:
            if row["id"] == claim.id and row["state"] == "measured":
                half = 0.0 if row["low"] is None else (row["high"] - row["low"]) / 2
                word = claim.decide(row["figure"], half)
                agrees = agreement(word, claim.word) in AGREES
                found.append(Other(name, word, claim.printed(row["figure"]), agrees))
    return found
