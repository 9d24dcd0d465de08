"""What the audits in ``book/ledger/models`` say of the claims: other models than the book's."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from course.claims.rows import BOOK
from vitlab.claims.ledger import AGREE, Claim, claims, measured, read


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

    Left out are untrained models, those on which the book itself measured the claim, and what was
    measured on images that the model is not for.
    """
    results = []
    for audit in audits:
        name = audit["model"]["name"]
        own = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", claim.setting)
        if audit["model"]["untrained"] or own or not audit["images"]["suit"]:
            continue
        for row in measured(audit):
            if row["id"] == claim.id:
                said = claim.judge(row)
                found = {"word": said["word"], "figure": said["printed"]}
                results.append({"model": name} | found | {"agrees": said["agreement"] in AGREE})
    return results
