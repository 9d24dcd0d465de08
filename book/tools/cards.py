"""Writes the stored verdicts anew after their words changed in ``claims.yml``, without executing.

python -m book.tools.cards [NOTEBOOK ...]        default: all chapters
"""

from pathlib import Path

import nbformat

from book.tools import notebooks
from course.claims.ledger import MIME, chapters
from course.claims.rows import load
from course.claims.verdict import Verdict


def write_cards(path: Path) -> bool:
    """Writes the verdicts of one notebook anew; says whether one changed."""
    before, notebook = path.read_text(encoding="utf-8"), notebooks.read(path)
    for output in notebooks.outputs(notebook):
        if stored := output.get("metadata", {}).get(MIME):
            card = Verdict(load().claims[stored["id"]], stored["seeds"] or None)
            output.data, output.metadata = map(nbformat.from_dict, card._repr_mimebundle_())
    notebooks.write(path, notebook)
    return path.read_text(encoding="utf-8") != before


if __name__ == "__main__":
    for path in notebooks.named_on_the_command_line(__doc__, chapters()):
        print(f"{path.name}: {'changed' if write_cards(path) else 'unchanged'}")
