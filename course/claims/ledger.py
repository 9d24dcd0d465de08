"""Verdicts from the notebooks' stored outputs, and how far processors move their figures."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course.claims.rows import BOOK, load

MIME = "application/vnd.minivit.verdict+json"  # marks a verdict among the stored outputs
MACHINES = BOOK / "machines.json"  # written by book/tools/machines.py


@dataclass(frozen=True)
class Found:
    """The verdict on a claim, as a chapter's stored outputs have it."""

    id: str
    figure: str = ""  # with its unit; empty where nothing is measured
    interval: str = ""
    margin: str = ""  # how far the nearest threshold is
    verdict: str = ""
    seeds: tuple[float, ...] = ()  # every digit: another processor may have other last ones
    cell: str = ""  # the id of the notebook's cell
    readings: str = ""  # what other ends of training give
    half: float | None = None  # half the interval, where Student's t does not give it


def chapters() -> list[Path]:
    """The notebooks of the book's chapters in reading order, without the solutions."""
    return sorted(BOOK.glob("*.ipynb"))


def harvest(notebooks: Iterable[Path] | None = None) -> dict[str, Found]:
    """The verdicts stored in notebooks, by default in all chapters, by claim id."""
    found: dict[str, Found] = {}
    for path in chapters() if notebooks is None else notebooks:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                if MIME not in output.get("data", {}):
                    continue
                shown, about = output["data"][MIME], output["metadata"].get(MIME, {})
                name, owner = shown["id"], load().claims[shown["id"]].chapter
                if name in found:
                    raise ValueError(f"{name} has two verdicts, the second in {path.name}")
                if owner != path.stem:
                    raise ValueError(f"{path.name}: a verdict on {name}, which belongs to {owner}")
                seeds, half = tuple(about.get("seeds", ())), about.get("half")
                found[name] = Found(**shown, seeds=seeds, half=half, cell=cell.get("id", ""))
    return found


@cache
def machines() -> dict[str, Any]:
    """The stored ``runs``; ``moved``: by claim, how far from its page a figure was."""
    return json.loads(MACHINES.read_text(encoding="utf-8"))


def spread(claim_id: str) -> float | None:
    """How far apart processors put a claim's figure; None if fewer than two were tried."""
    moved = [row["moved"][claim_id] for row in machines()["runs"] if claim_id in row["moved"]]
    return max(moved) - min(moved) if len(moved) > 1 else None
