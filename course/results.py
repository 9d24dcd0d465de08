"""``study("digits")``: the results of a study, and where they come from."""

import base64
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from course.claims.rows import BOOK

RESULTS = BOOK / "results"


@dataclass(frozen=True)
class StudyResults:
    """Of a study that trains, each of ``rows`` has ``parameters``; ``operations``, multiply-adds of
    a forward pass of one image; ``search``, accuracies on the validation part by run; ``runs``, the
    chosen run for each seed; ``diverged``, how many of these have no scores. Where any has:
    ``accuracy`` on the test part (``mean``, ``values``, and the 95 % interval from ``low`` to
    ``high``, ``over`` the ``"seeds"`` or the ``"test pictures"``), and ``log_likelihood``,
    ``calibration_error``, ``train_accuracy`` and ``scores``.
    """

    name: str
    rows: dict[str, dict[str, Any]]
    seeds: list[int]
    commit: str  # a + at its end: of files with changes
    machine: str
    date: str

    @property
    def command(self) -> str:
        return f"python -m studies {self.name}"

    @property
    def provenance(self) -> str:
        """The command, and at which commit, from which seeds, where and when it was run."""
        seeds = f"seed{'s' * (len(self.seeds) > 1)} {', '.join(map(str, self.seeds))}"
        return f"{self.command} (commit {self.commit}, {seeds}; {self.machine}; {self.date})"


def study(name: str, folder: Path = RESULTS) -> StudyResults:
    """Reads the results of a study, by the name of its module in ``studies``."""
    known = sorted(path.stem for path in folder.glob("*.json"))
    if name not in known:
        raise ValueError(
            f"no results of a study {name!r}: there are {', '.join(known) or 'none'}. "
            "python -m studies NAME computes those of a study"
        )
    stored = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    fields = ("rows", "seeds", "commit", "machine", "date")
    return StudyResults(name, *(stored[field] for field in fields))


def picture(text: str) -> np.ndarray:
    """An image that a study keeps as text: ``[height, width]``, or with its colours."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))
