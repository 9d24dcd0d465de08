"""A study that measures what exists, row by row: each row is stored as soon as it is measured."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from studies.runner.storage import Place, agree, compared, provenance, same_machine, store

Figures = dict[str, Any]
# A recheck does not compare where a row comes from, nor images, which lossy files hold.
ABOUT = ("commit", "machine", "torch", "date", "seconds", "pictures")


class NotHere(Exception):
    """A row cannot be measured here, for the reason given, such as weights that are elsewhere."""


@dataclass(frozen=True)
class Survey:
    """A table each of whose rows is measured by itself.

    Args:
        name: Of its module, and of its file in ``book/results``.
        rows: Their names, in order.
        measure: Gives a row's figures, as JSON has them, from its name. Its second argument asks
            for a rehearsal: the same code in a second, on as little as will do. Images, as text,
            may stand under ``"images"``. It raises :class:`NotHere` where a row is out of reach.
        seeds: Those it uses.
        tolerance: How much a figure may differ from the stored one, as a fraction of it, when it is
            measured again on another kind of machine.
    """

    name: str
    rows: Sequence[str]
    measure: Callable[[str, bool], Figures]
    seeds: Sequence[int] = (0,)
    tolerance: float = 0.05

    def carry_out(self, place: Place, again: Sequence[str] = (), rehearsal: bool = False) -> None:
        """Measures the rows named, or else those that are missing; writes the file after each."""
        torch.set_num_threads(1)
        stored = self.stored(place)
        missing = [name for name in self.rows if _state(stored.get(name)) != "measured"]
        for name in again or missing:
            about = provenance()
            start = time.process_time()
            try:
                figures = self.measure(name, rehearsal)
            except NotHere as reason:
                figures = {"not_here": str(reason)}
            about["seconds"] = round(time.process_time() - start, 1)
            stored[name] = figures | about
            # The file as a whole has the provenance of the row that came last.
            found = {
                "study": self.name,
                "command": place.command,
                "seeds": list(self.seeds),
                "rows": {key: stored[key] for key in self.rows if key in stored},
                **about,
            }
            store(found, place.table(self.name))
            print(f"{name:40}{_state(stored[name])}, {about['seconds']:.0f} s", flush=True)

    def stored(self, place: Place) -> dict[str, Figures]:
        """The rows that are stored."""
        path = place.table(self.name)
        return json.loads(path.read_text())["rows"] if path.exists() else {}

    def listed(self, place: Place) -> str:
        """Every row with its state."""
        stored = self.stored(place)
        return "\n".join(f"{name:40}{_state(stored.get(name))}" for name in self.rows)

    def recheck(self, name: str, place: Place) -> int:
        """Measures a row again and compares; gives 1 if figures differ, 2 if not stored, else 0.

        The empty string is the first row.
        """
        name = name or self.rows[0]
        old = self.stored(place).get(name, {})
        if not old or "not_here" in old:
            print(f"no row {name} of {self.name} is stored: --list names them", file=sys.stderr)
            return 2
        torch.set_num_threads(1)
        about = provenance()
        new = json.loads(json.dumps(self.measure(name, False)))
        before, after = (
            {key: value for key, value in figures.items() if key not in ABOUT}
            for figures in (old, new)
        )
        near = {"rel_tol": 0 if same_machine(old, about) else self.tolerance}
        return agree(name, old, compared(before, after, near))

    def smoke(self, place: Place) -> int:
        """Rehearses every row."""
        with TemporaryDirectory() as folder:
            self.carry_out(replace(place, root=Path(folder)), rehearsal=True)
        return 0


def _state(row: Figures | None) -> str:
    if row is None:
        return "to measure"
    return f"not here: {row['not_here']}" if "not_here" in row else "measured"
