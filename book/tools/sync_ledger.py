"""Carries the words of ``claims.yml`` to the chapters' cards, and to what ``vitlab.claims`` has.

python -m book.tools.sync_ledger        after a change of them, or of a verdict; executes nothing
"""

import json
from typing import Any

import nbformat

from book.tools import notebooks
from course.claims.cite import Build
from course.claims.export import ledger
from course.claims.ledger import MIME, chapters, harvest
from course.claims.readings import stored
from course.claims.rows import load
from course.claims.verdict import Verdict
from vitlab.claims.ledger import LEDGER

FIELDS = "id statement measure setting because unit rule word verdict value low high figure url"


def rows() -> dict[str, Any]:
    """The claims with a question, with the fields of :class:`vitlab.claims.ledger.Claim`."""
    data, claims = ledger(harvest(), Build()), load().claims
    carried = [
        {field: row[field] for field in FIELDS.split()}
        | {"format": claims[row["id"]].format, "question": claims[row["id"]].question}
        | {"proved": row["basis"] == "proved"}
        for row in data["claims"]
        if claims[row["id"]].question
    ]
    return {"version": data["version"], "license": data["license"], "claims": carried}


if __name__ == "__main__":
    for path in chapters():
        notebook = notebooks.read(path)
        for output in notebooks.outputs(notebook):
            if about := output.get("metadata", {}).get(MIME):
                card = Verdict(load().claims[about["id"]], stored(about))
                output.data, output.metadata = map(nbformat.from_dict, card._repr_mimebundle_())
        notebooks.write(path, notebook)
    text = json.dumps(rows(), ensure_ascii=False, indent=1)
    LEDGER.write_text(text + "\n", encoding="utf-8")
