"""A study that measures what exists, row by row: each row is stored as soon as it is measured."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from studies.runner.storage import Place, differences, provenance, same_machine, store

Figures = dict[str, Any]
# A recheck does not compare where a row comes from, nor images, which lossy files hold.
ABOUT = ("commit", "machine", "torch", "date", "seconds", "pictures")


class NotHere(Exception):
    """A row cannot be measured here, for the reason given, such as weights that are elsewhere."""


class Table:
    """What studies of both kinds have: a name, names of rows, and a file of rows."""

    name: str
    rows: Iterable[str]

    def stored(self, place: Place) -> dict[str, Figures]:
        """The rows that are stored."""
        path = place.table(self.name)
        return json.loads(path.read_text())["rows"] if path.exists() else {}

    def missing(self, place: Place) -> list[str]:
        """The rows that are still to be measured; what was out of reach may be near now."""
        stored = self.stored(place)
        return [name for name in self.rows if _state(stored.get(name)) != "measured"]

    def listed(self, place: Place) -> str:
        """Every row with its state and its runs, if it has any."""
        stored = self.stored(place)
        return "\n".join(
            f"{name:40}{_state(stored.get(name))} {' '.join(stored.get(name, {}).get('runs', ()))}"
            for name in self.rows
        )

    def keep(
        self, rows: dict[str, Figures], place: Place, seeds: Iterable[int], about: Figures
    ) -> None:
        """Writes these rows, beside those stored; the file has the provenance of the last."""
        kept = self.stored(place) | rows
        table = {
            "study": self.name,
            "command": place.command,
            "seeds": list(seeds),
            "rows": {name: kept[name] for name in self.rows if name in kept},
            **about,
        }
        store(table, place.table(self.name))


@dataclass(frozen=True)
class Survey(Table):
    """A table each of whose rows is measured by itself.

    ``measure`` gives a row's figures, as JSON has them, from its name; images, as text, may stand
    under ``"pictures"``. It raises :class:`NotHere` where a row is out of reach.
    """

    name: str  # of its module, and of its file in book/results
    rows: Sequence[str]
    measure: Callable[[str], Figures]
    seeds: Sequence[int] = (0,)
    tolerance: float = 0.05  # of a figure measured again on another kind of machine

    def carry_out(self, place: Place, rows: Sequence[str] = (), workers: int = 1) -> None:
        """Measures these rows, or else the missing ones, on one thread; stores each."""
        torch.set_num_threads(1)
        for name in rows or self.missing(place):
            about = provenance()
            start = time.process_time()
            try:
                figures = self.measure(name)
            except NotHere as reason:
                figures = {"not_here": str(reason)}
            about["seconds"] = round(time.process_time() - start, 1)
            self.keep({name: figures | about}, place, self.seeds, about)
            print(f"{name:40}{_state(figures)}, {about['seconds']:.0f} s", flush=True)

    def recheck(self, name: str, place: Place) -> int:
        """Measures a row, by default the first, again and compares; gives the exit code."""
        name = name or self.rows[0]
        old = self.stored(place).get(name, {"not_here": ""})
        if "not_here" in old:
            return not_stored(name, self.name)
        torch.set_num_threads(1)
        near = {"rel_tol": 0 if same_machine(old, provenance()) else self.tolerance}
        new = json.loads(json.dumps(self.measure(name)))
        before, after = (
            {key: value for key, value in figures.items() if key not in ABOUT}
            for figures in (old, new)
        )
        return agree(name, old, differences(before, after, near))


def not_stored(name: str, study: str) -> int:
    """Says so; gives the exit code."""
    print(f"no {name} of {study} is stored: --list names what is", file=sys.stderr)
    return 2


def agree(name: str, old: Figures, lines: list[str]) -> int:
    """Prints how a stored result differs from another; gives 1 if it does, else 0."""
    print("\n".join([f"{name} of {old['date']} ({old['commit']}):", *lines]))
    print("the figures differ" if lines else "the figures agree")
    return int(bool(lines))


def _state(row: Figures | None) -> str:
    if row is None:
        return "to measure"
    return f"not here: {row['not_here']}" if "not_here" in row else "measured"
