"""The quiz bank: questions that a machine marks, with a reason for each answer.

``NN.yml`` has those of chapter NN, each with

    id       a name, one in the whole bank
    ask      the question; what is computed stands between << and >>
    code     Python that it is about, if it is; with ``prints`` the right answer is what it prints
    exercise whose check says ``says`` to the code
    figure   the name of a figure of the chapter to look at
    from     what the chapter says or prints, from which numbers of the question come
    answers  the right one first, each with its reason
"""

import base64
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import nbformat
import yaml
from jinja2 import Environment, StrictUndefined

from course.claims import harvest
from course.claims.rows import BOOK
from course.results import study

FOLDER = Path(__file__).parent
COMPUTED = Environment(
    variable_start_string="<<", variable_end_string=">>", comment_start_string="<<#",
    block_start_string="<<%", undefined=StrictUndefined,
)  # fmt: skip


@dataclass(frozen=True)
class Item:
    """A question of a chapter. The first answer is the right one; texts are Markdown."""

    chapter: str  # the name of its notebook
    id: str
    ask: str
    answers: dict[str, str]
    code: str = ""
    exercise: str = ""
    says: str = ""
    figure: str = ""
    prints: bool = False
    source: str = field(default="", metadata={"named": "from"})

    @property
    def question(self) -> str:
        code = f"\n\n```python\n{self.code.rstrip()}\n```" if self.code else ""
        return self.ask.strip() + code

    @property
    def shown(self) -> list[str]:
        """The answers in an order that says nothing."""
        return random.Random(self.id).sample([*self.answers], len(self.answers))

    @property
    def right(self) -> str:
        return next(iter(self.answers))

    @property
    def picture(self) -> tuple[str, str, bytes]:
        """The id of the figure's cell, its text, and its image."""
        for cell in nbformat.read(BOOK / f"{self.chapter}.ipynb", as_version=4).cells:
            drawn = cell.metadata.get("mystnb", {})
            if drawn.get("figure", {}).get("name") == self.figure:
                images = (output.get("data", {}).get("image/png") for output in cell.outputs)
                image = base64.b64decode(next(filter(None, images)))
                return cell.id, " ".join(drawn["image"]["alt"].split()), image
        raise ValueError(f"{self.chapter} has no figure {self.figure!r}, of which {self.id} asks")


def measured(claim: str) -> str:
    """A claim's figure, as its card has it."""
    return harvest()[claim].figure


@cache
def bank() -> tuple[Item, ...]:
    """All questions, in the chapters' order."""
    return tuple(item for path in sorted(FOLDER.glob("[0-9]*.yml")) for item in _items(path))


def _items(path: Path) -> Iterator[Item]:
    (notebook,) = BOOK.glob(f"{path.stem}_*.ipynb")
    known = {name: getattr(math, name) for name in ("log", "sqrt", "exp", "pi")}
    text = COMPUTED.from_string(path.read_text(encoding="utf-8"))
    for row in yaml.safe_load(text.render(known, measured=cache(measured), study=study)):
        row["source"] = row.pop("from", "")
        yield Item(chapter=notebook.stem, **row)
