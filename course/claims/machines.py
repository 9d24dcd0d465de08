"""The runs of ``make test-machines`` on several processors, and how far they move a figure."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from course.claims.rows import BOOK

MACHINES = BOOK / "machines.json"  # written by tools/machines.py


@cache
def machines(path: Path = MACHINES) -> dict[str, Any]:
    """The stored ``runs``, a row for each; with ``figures``, by claim, the mean of the seeds."""
    return json.loads(path.read_text(encoding="utf-8"))


def spread(claim_id: str) -> float | None:
    """The range of a claim's figure over the processors that were tried; None for fewer."""
    rows = machines()["runs"]
    figures = [row["figures"][claim_id] for row in rows if claim_id in row["figures"]]
    return max(figures) - min(figures) if len(figures) > 1 else None
