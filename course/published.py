"""``published("dosovitskiy2021", "table 2")``: a published table, not measured here."""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("published.json")


def published(paper: str, table: str) -> dict[str, dict[str, Any]]:
    """Rows of a published table, by name; ``published.json`` says what their figures are.

    The paper is a key of ``book/references.bib``, the table as the paper counts it.
    """
    papers = json.loads(FILE.read_text(encoding="utf-8"))
    if table not in papers.get(paper, {}):
        known = ", ".join(f"{name}, {title}" for name, tables in papers.items() for title in tables)
        raise ValueError(f"no {table} of {paper} is kept: there are {known}")
    return papers[paper][table]["rows"]
