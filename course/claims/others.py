"""What the audits in ``book/ledger/models`` say of the claims: other models than the book's."""

from functools import cache
from pathlib import Path
from typing import Any

from course.claims.rows import BOOK
from vitlab.claims import ledger
from vitlab.claims.ledger import Other, others, read

MODELS = BOOK / "ledger" / "models"


def files() -> list[Path]:
    """The stored audits."""
    return sorted(MODELS.glob("*.json"))


@cache
def _audits() -> list[dict[str, Any]]:
    return [read(path) for path in files()]


def others_of(name: str) -> list[Other]:
    """What other models give for a claim; none for one that is not measured on any model."""
    claim = ledger.claims().get(name)
    return others(_audits(), claim) if claim else []
