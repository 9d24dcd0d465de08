"""The runs of ``make test-machines`` on several processors, and how far they move a figure."""

import json
from functools import cache
from typing import Any

from course.claims.rows import BOOK

MACHINES = BOOK / "machines.json"  # written by book/tools/machines.py


@cache
def machines() -> dict[str, Any]:
    """The stored ``runs``; ``moved``: by claim, how far from its page a figure was."""
    return json.loads(MACHINES.read_text(encoding="utf-8"))


def spread(claim_id: str) -> float | None:
    """How far apart processors put a claim's figure; None if fewer than two were tried."""
    rows = machines()["runs"]
    moved = [row["moved"][claim_id] for row in rows if claim_id in row["moved"]]
    return max(moved) - min(moved) if len(moved) > 1 else None
