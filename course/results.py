"""``study("digits")`` reads the stored results of a long training, and where they come from."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.claims.rows import BOOK

RESULTS = BOOK / "results"


@dataclass(frozen=True)
class StudyResults:
    """The results of a study, as ``python -m studies.NAME`` wrote them.

    ``rows`` holds for each model, in the study's order:

    - ``parameters``, and ``operations``: the multiply-adds of a forward pass of one image;
    - ``search``: the validation accuracy of each run; ``runs``: the chosen run for each seed;
      ``diverged``: how many of these have no scores;
    - ``accuracy`` on the test part: its ``mean``, ``values``, and the 95 % interval from ``low`` to
      ``high``, ``over`` the ``"seeds"``, or over the ``"test pictures"`` where there is one seed;
    - ``log_likelihood`` and ``calibration_error`` on the test part, ``train_accuracy``: means over
      the seeds; ``scores``: each seed's, on the ``train``, ``validation`` and ``test`` part;
    - whatever else the study measures, such as ``images_per_second``.
    """

    name: str
    rows: dict[str, dict[str, Any]]
    seeds: list[int]
    command: str
    commit: str  # ends in + if files had uncommitted changes
    machine: str
    date: str

    @property
    def provenance(self) -> str:
        """The command that made the results, the commit, the seeds, the machine and the date."""
        seeds = f"seed{'s' * (len(self.seeds) > 1)} {', '.join(map(str, self.seeds))}"
        where = f"commit {self.commit}, {seeds}; {self.machine}; {self.date}"
        return f"{self.command} ({where})"


def study(name: str, folder: Path = RESULTS) -> StudyResults:
    """The stored results of a module in ``studies``, such as ``"digits"``."""
    known = sorted(path.stem for path in folder.glob("*.json"))
    if name not in known:
        raise ValueError(
            f"no results of a study {name!r}: there are {', '.join(known) or 'none'}. "
            "python -m studies.NAME makes those of a study"
        )
    found = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    about = {key: found[key] for key in ("rows", "seeds", "command", "commit", "machine", "date")}
    return StudyResults(name, **about)
