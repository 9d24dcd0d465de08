"""``published("dosovitskiy2021", "table 2")``: a published table, not measured here."""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("published.json")


def published(paper: str, table: str) -> dict[str, dict[str, Any]]:
    """Rows of a published table, by name; ``published.json`` says what their figures are.

    Args:
        paper: Its key in ``book/references.bib``.
        table: As the paper counts it, such as ``"table 2"``.

    Raises:
        ValueError: The book keeps no such table.
    """
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    if table not in kept.get(paper, {}):
        known = ", ".join(f"{name}, {one}" for name, tables in kept.items() for one in tables)
        raise ValueError(f"no {table} of {paper} is kept: there are {known}")
    return kept[paper][table]["rows"]
