"""Writes what ``vitlab.claims`` has of the book's ledger: the claims measured on any model.

python -m book.tools.sync_ledger        after a change of their text, or of their verdict
"""

import json
from typing import Any

from course.claims.cite import Build
from course.claims.export import ledger
from course.claims.ledger import harvest
from course.claims.rows import load
from vitlab.claims.ledger import LEDGER

FIELDS = (
    *("id", "statement", "measure", "setting", "because", "unit", "rule"),
    *("word", "verdict", "value", "low", "high", "figure", "url"),
)


def rows() -> dict[str, Any]:
    """The claims with a question, with the fields of :class:`vitlab.claims.ledger.Claim`."""
    data, claims = ledger(harvest(), Build()), load().claims
    carried = [
        {field: row[field] for field in FIELDS}
        | {"format": claims[row["id"]].format, "question": claims[row["id"]].question}
        for row in data["claims"]
        if claims[row["id"]].question
    ]
    return {"version": data["version"], "license": data["license"], "claims": carried}


if __name__ == "__main__":
    text = json.dumps(rows(), ensure_ascii=False, indent=1)
    LEDGER.write_text(text + "\n", encoding="utf-8")
