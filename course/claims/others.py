"""What the audits in ``book/ledger/models`` say of the claims: other models than the book's."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from course.claims.rows import BOOK
from vitlab.claims.ledger import Claim, agreement, claims, half_of, measured, read


def files() -> list[Path]:
    """The stored audits."""
    return sorted((BOOK / "ledger" / "models").glob("*.json"))


@cache
def _audits() -> list[dict[str, Any]]:
    return [read(path) for path in files()]


def others_of(name: str) -> list[dict[str, Any]]:
    """What other models give for a claim; none for one that is not measured on any model."""
    claim = claims().get(name)
    return others(_audits(), claim) if claim else []


def others(audits: Iterable[Mapping[str, Any]], claim: Claim) -> list[dict[str, Any]]:
    """What stored audits say of a claim, by today's rule, as ``ledger.schema.json`` has it.

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
                agrees = agreement(word, claim.word) in ("same word", "same side")
                figure = claim.printed(row["figure"])
                results.append({"model": name, "word": word, "figure": figure, "agrees": agrees})
    return results
