"""The command of a study that measures what exists and trains nothing: ``python -m studies.NAME``.

Each row of its table is written as soon as it is measured, with where, when and by which code; a
survey that is stopped goes on with the rows that are missing.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from studies.one import HERE, Place, provenance, store

Figures = dict[str, Any]
# What a recheck does not compare: where a row comes from, and pictures, which lossy files hold.
ABOUT = ("commit", "machine", "torch", "date", "seconds", "pictures")


class NotHere(Exception):
    """A row cannot be measured here; says why, such as weights that are not on this machine."""


@dataclass(frozen=True)
class Survey:
    """A table each of whose rows is measured by itself.

    Args:
        name: Of its module, and of its file in ``book/results``.
        rows: Their names, in order.
        measure: Gives a row's figures, in a form that JSON has, from its name. A second argument
            says whether this is a rehearsal: the same code in a second, on as little as will do.
            Pictures, as text, may stand under ``"pictures"``. It raises :class:`NotHere` where a
            row is out of reach.
        seeds: Those it uses.
        tolerance: How far a figure may be from the stored one, as a fraction of it, when it is
            measured again on another kind of machine.
    """

    name: str
    rows: Sequence[str]
    measure: Callable[[str, bool], Figures]
    seeds: Sequence[int] = (0,)
    tolerance: float = 0.05


def main(survey: Survey, arguments: Sequence[str] | None = None, place: Place = HERE) -> int:
    """Does what is typed; gives the exit code: 1 if a recheck finds other figures, else 0."""
    parser = argparse.ArgumentParser(f"python -m studies.{survey.name}")
    parser.add_argument("--rows", nargs="+", choices=survey.rows, metavar="ROW", default=[],
                        help="measure these anew (default: what is missing)")  # fmt: skip
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--list", action="store_true", help="say what is measured, and what is not")
    one.add_argument("--recheck", nargs="?", const=survey.rows[0], choices=survey.rows,
                     metavar="ROW", help="measure a row again and compare")  # fmt: skip
    one.add_argument("--smoke", action="store_true", help="run the code in seconds, keep nothing")
    options = parser.parse_args(arguments)
    place = replace(place, command=f"python -m studies.{survey.name}")
    torch.set_num_threads(1)
    if options.list:
        stored = rows_of(survey, place)
        print("\n".join(f"{name:40}{_state(stored.get(name))}" for name in survey.rows))
    elif options.recheck:
        return recheck(survey, options.recheck, place)
    elif options.smoke:
        with TemporaryDirectory() as folder:
            carry_out(survey, [], replace(place, root=Path(folder)), rehearsal=True)
    else:
        carry_out(survey, options.rows, place)
    return 0


def carry_out(survey: Survey, again: Sequence[str], place: Place, rehearsal: bool = False) -> None:
    """Measures rows, and writes the survey's file after each.

    Args:
        survey: Its rows that are missing are measured, if none are named.
        again: Rows to be measured whether they are there or not.
        place: Where the file is.
        rehearsal: Whether as little as will do is measured.
    """
    stored = rows_of(survey, place)
    for name in again or [name for name in survey.rows if _state(stored.get(name)) != "measured"]:
        about, start = provenance(), time.process_time()
        try:
            figures = survey.measure(name, rehearsal)
        except NotHere as reason:
            figures = {"not_here": str(reason)}
        about["seconds"] = round(time.process_time() - start, 1)
        stored[name] = figures | about
        # The file as a whole has the provenance of the row that came last.
        found = {
            "study": survey.name,
            "command": place.command,
            "seeds": list(survey.seeds),
            "rows": {key: stored[key] for key in survey.rows if key in stored},
            **about,
        }
        store(found, _file(survey, place))
        print(f"{name:40}{_state(stored[name])}, {about['seconds']:.0f} s", flush=True)


def rows_of(survey: Survey, place: Place) -> dict[str, Figures]:
    """The rows that are stored."""
    path = _file(survey, place)
    return json.loads(path.read_text())["rows"] if path.exists() else {}


def recheck(survey: Survey, name: str, place: Place) -> int:
    """Measures a row again, keeping nothing, and compares; gives 1 if figures differ, else 0."""
    old = rows_of(survey, place).get(name)
    if _state(old) != "measured":
        print(f"no row {name} of {survey.name} is stored: --list names them", file=sys.stderr)
        return 2
    assert old is not None
    about, new = provenance(), json.loads(json.dumps(survey.measure(name, False)))
    exact = all(old[key] == about[key] for key in ("machine", "torch"))
    old_figures, new_figures = (
        {key: value for key, value in figures.items() if key not in ABOUT} for figures in (old, new)
    )
    differences = compared(old_figures, new_figures, 0 if exact else survey.tolerance)
    print("\n".join([f"{name} of {old['date']} ({old['commit']}):", *differences]))
    print("the figures differ" if differences else "the figures agree")
    return int(bool(differences))


def compared(old: Any, new: Any, tolerance: float, path: str = "") -> list[str]:
    """Where two structures of numbers, texts, lists and dictionaries differ by too much."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        parts = [(key, old[key], new[key]) for key in old]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        parts = [(place, a, b) for place, (a, b) in enumerate(zip(old, new, strict=True))]
    elif isinstance(old, float) and isinstance(new, float | int):
        same = math.isclose(old, new, rel_tol=tolerance)
        return [] if same else [f"{path}: {old:.6g}, now {new:.6g}"]
    else:
        return [] if old == new else [f"{path}: {old}, now {new}"]
    return [line for key, a, b in parts for line in compared(a, b, tolerance, f"{path} {key}")]


def _file(survey: Survey, place: Place) -> Path:
    return place.root / "book/results" / f"{survey.name}.json"


def _state(row: Figures | None) -> str:
    if row is None:
        return "to measure"
    return f"not here: {row['not_here']}" if "not_here" in row else "measured"
