"""Stored audits: reading them, and counting over models what agrees with the book."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitlab.claims.ledger import AGREES, Claim, agreement
from vitlab.claims.report import FORMAT

NUMBER = int | float
END = int | float | None  # of an interval


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
            raise ValueError(f"its format is {found['format']!r}, not {FORMAT}")
        if not found["states"]["measured"]:
            raise ValueError("no claim in it was measured")
        for row in found["claims"]:
            _expect(row, {"id": str, "state": str})
            if row["state"] == "measured":
                _expect(row, {"figure": NUMBER, "low": END, "high": END, "seconds": NUMBER})
        _expect(found["model"], {"name": str, "weights": str, "untrained": bool})
        _expect(found["images"], {"source": str, "sha256": str})
        _expect(found, {"seed": int, "count": int})
        if found["beside"] is not None:
            _expect(found["beside"], {"name": str})
    except (ValueError, TypeError, KeyError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"expected a stored audit at {path}: {why}") from error
    return dict(found)


def _expect(fields: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    for name, kind in kinds.items():
        if not isinstance(fields[name], kind):
            raise ValueError(f"its {name} is {fields[name]!r}")


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
