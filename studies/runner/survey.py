"""A study that measures what exists, row by row."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from studies.runner.storage import Figures, Store, differences, provenance, same_machine, write

Rows = dict[str, Figures]
# A recheck does not compare where a row comes from, nor images, which lossy files hold.
ABOUT = ("commit", "machine", "torch", "date", "seconds", "pictures")


class Table:
    """What studies of both kinds have: a name, names of rows, and a file of rows."""

    name: str
    rows: Iterable[str]

    def stored(self, store: Store) -> Rows:
        path = store.table(self.name)
        return json.loads(path.read_text())["rows"] if path.exists() else {}

    def missing(self, store: Store) -> list[str]:
        stored = self.stored(store)
        return [name for name in self.rows if name not in stored]

    def listed(self, store: Store) -> str:
        """Every row with its state and its runs, if it has any."""
        lines = {name: ["to measure"] for name in self.rows}
        for name, row in self.stored(store).items():
            lines[name] = ["measured", *row.get("runs", ())]
        return "\n".join(f"{name:40}{' '.join(line)}" for name, line in lines.items())

    def keep(self, rows: Rows, store: Store, seeds: Iterable[int], about: Figures) -> None:
        """Writes these rows, beside those stored; the file has the provenance of the last."""
        every = self.stored(store) | rows
        table = {
            "study": self.name,
            "command": store.command,
            "seeds": list(seeds),
            "rows": {name: every[name] for name in self.rows if name in every},
            **about,
        }
        write(table, store.table(self.name))

    def not_stored(self, name: str) -> int:
        print(f"no {name} of {self.name} is stored: --list names what is", file=sys.stderr)
        return 2


@dataclass(frozen=True)
class Survey(Table):
    """A table each of whose rows is measured by itself.

    ``rows`` holds what measures each, and raises FileNotFoundError where weights or images are
    elsewhere. Figures are stored :func:`plain`; images, as text, may stand under ``"pictures"``.
    """

    name: str  # of its file in book/results
    rows: Mapping[str, Callable[[], Figures]]
    seeds: Sequence[int] = (0,)
    digits: str = ".4f"
    tolerance: float = 0.05  # of a figure measured again on another kind of machine

    def measure(self, name: str) -> Figures:
        return plain(self.rows[name](), self.digits)

    def carry_out(self, store: Store, rows: Sequence[str] = (), workers: int = 1) -> None:
        """Measures these rows, or else the missing ones, on one thread; stores what it can."""
        torch.set_num_threads(1)
        for name in rows or self.missing(store):
            about = provenance()
            start = time.process_time()
            try:
                figures = self.measure(name)
            except FileNotFoundError as reason:
                print(f"{name:40}not here: {reason}")
                continue
            about["seconds"] = round(time.process_time() - start, 1)
            self.keep({name: figures | about}, store, self.seeds, about)
            print(f"{name:40}measured, {about['seconds']:.0f} s", flush=True)

    def recheck(self, name: str, store: Store) -> int:
        """Measures a row, by default the first, again and compares; gives the exit code."""
        name = name or next(iter(self.rows))
        if name not in (stored := self.stored(store)):
            return self.not_stored(name)
        old = stored[name]
        torch.set_num_threads(1)
        near = {"rel_tol": 0 if same_machine(old, provenance()) else self.tolerance}
        results = old, self.measure(name)
        before, after = ({k: v for k, v in f.items() if k not in ABOUT} for f in results)
        return agree(name, old, differences(before, after, near))


def by_row(name: str, measure: Callable[[str], Figures], rows: Iterable[str], **how: Any) -> Survey:
    """A survey whose rows are all measured by one function, of a row's name."""
    return Survey(name, {row: partial(measure, row) for row in rows}, **how)


def agree(name: str, old: Figures, lines: list[str]) -> int:
    """Prints how a stored result differs from another; gives 1 if it does, else 0."""
    print("\n".join([f"{name} of {old['date']} ({old['commit']}):", *lines]))
    print("the figures differ" if lines else "the figures agree")
    return int(bool(lines))


def over_seeds(rows: Iterable[Figures]) -> Figures:
    """A list for each figure out of a figure for each seed."""
    rows = list(rows)
    return {key: [row[key] for row in rows] for key in rows[0]}


def plain(figures: Any, digits: str = ".4f") -> Any:
    """Figures in a form that JSON has, to four digits after the point; none for NaN.

    With ``digits=".4g"`` they have four digits in all, with ``""`` they are not rounded.
    """
    return json.loads(
        json.dumps(figures, default=Tensor.tolist),
        parse_float=lambda number: float(f"{float(number):{digits}}"),
        parse_constant=lambda name: None if name == "NaN" else float(name),
    )
