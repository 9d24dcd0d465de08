"""The runs of ``make test-machines`` on several processors, and how far they move a figure."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from course.claims.rows import BOOK

MACHINES = BOOK / "machines.json"  # written by book/tools/machines.py


@cache
def machines(path: Path = MACHINES) -> dict[str, Any]:
    """The stored ``runs``, a row for each; ``moved`` says by claim how far a figure was from the
    one that the page had at that commit, in the mean over the seeds.
    """
    return json.loads(path.read_text(encoding="utf-8"))


def spread(claim_id: str) -> float | None:
    """How far apart processors put a claim's figure; None if fewer than two were tried.

    Runs are of different commits, and what a claim measures may have changed between them: so each
    is compared with its own page.
    """
    rows = machines()["runs"]
    moved = [row["moved"][claim_id] for row in rows if claim_id in row["moved"]]
    return max(moved) - min(moved) if len(moved) > 1 else None
