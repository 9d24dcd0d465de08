"""Writes what ``vitlab.claims`` carries of the book's ledger: the claims that have a probe.

    python -m book.tools.carried

From ``book/claims.yml`` and the verdicts stored in the chapters; to run again after either changed.
"""

import json
from typing import Any

from course.claims.cite import Build
from course.claims.export import ledger
from course.claims.ledger import harvest
from course.claims.rows import load
from vitlab.claims.ledger import LEDGER
from vitlab.claims.run import available

FIELDS = (
    *("id", "statement", "measure", "setting", "because", "unit", "rule"),
    *("word", "verdict", "value", "low", "high", "figure", "url"),
)


def carried() -> dict[str, Any]:
    """The claims with a probe, with the fields of :class:`vitlab.claims.ledger.Claim`."""
    data = ledger(harvest(), Build())
    rows = {claim["id"]: claim for claim in data["claims"] if claim["value"] is not None}
    if without := sorted(set(available()) - set(rows)):
        raise ValueError(f"probes of claims without a measured verdict: {', '.join(without)}")
    claims = [
        {field: rows[name][field] for field in FIELDS} | {"format": load().claims[name].format}
        for name in rows
        if name in available()
    ]
    return {"version": data["version"], "license": data["license"], "claims": claims}


def main() -> None:
    text = json.dumps(carried(), ensure_ascii=False, indent=1)
    LEDGER.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
