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
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import yaml
from jinja2 import Environment, StrictUndefined

from course.claims.ledger import chapters, harvest
from course.claims.rows import BOOK

FOLDER = Path(__file__).parent
COMPUTED = Environment("<<%", "%>>", "<<", ">>", "<<#", "#>>", undefined=StrictUndefined)


@dataclass(frozen=True)
class Item:
    """A question of a chapter, the name of a notebook; texts are Markdown."""

    chapter: str
    id: str
    ask: str
    answers: dict[str, str]
    code: str = ""
    exercise: str = ""
    says: str = ""
    figure: str = ""
    prints: bool = False
    source: str = ""  # what stands under ``from``

    @property
    def question(self) -> str:
        code = f"\n\n```python\n{self.code.rstrip()}\n```" if self.code else ""
        return self.ask.strip() + code

    @property
    def shown(self) -> list[str]:
        """The answers in an order that says nothing."""
        return random.Random(self.id).sample([*self.answers], len(self.answers))

    @property
    def section(self) -> str:
        return f"{int(self.chapter[:2])}. {self.chapter[3:].replace('_', ' ').capitalize()}"

    @property
    def picture(self) -> tuple[str, str, bytes]:
        """The id of the figure's cell, its text, and its image."""
        return figure(self.figure)[1:]


@cache
def figure(name: str) -> tuple[str, str, str, bytes]:
    """A chapter's figure: the chapter, the id of its cell, its text, and its image."""
    for path in chapters():
        for cell in nbformat.read(path, as_version=4).cells:
            drawn = cell.metadata.get("mystnb", {})
            if drawn.get("figure", {}).get("name") == name:
                (image,) = (o.data["image/png"] for o in cell.outputs if "image/png" in o.data)
                alt = " ".join(drawn["image"]["alt"].split())
                return path.stem, cell.id, alt, base64.b64decode(image)
    raise ValueError(f"no chapter has a figure {name!r}")


@cache
def bank() -> tuple[Item, ...]:
    """All questions, in the chapters' order."""
    figures, items = {name: found.figure for name, found in harvest().items()}, list[Item]()
    for path in sorted(FOLDER.glob("[0-9]*.yml")):
        (notebook,) = BOOK.glob(f"{path.stem}_*.ipynb")
        text = COMPUTED.from_string(path.read_text(encoding="utf-8"))
        for row in yaml.safe_load(text.render(log=math.log, measured=figures.__getitem__)):
            items.append(Item(notebook.stem, source=row.pop("from", ""), **row))
    return tuple(items)
