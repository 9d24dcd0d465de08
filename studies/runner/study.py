"""A study that trains: a search for each row of its table, then a run for each seed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from studies.runner.pool import gather, results
from studies.runner.run import Run, train_one
from studies.runner.storage import Place, differences, provenance, same_machine
from studies.runner.survey import Figures, Table, agree, not_stored
from studies.runner.table import best, printed, row

Runs = Mapping[str, Sequence[Run]]
Rows = dict[str, Figures]


def no_more(finals: Runs, place: Place) -> Rows:
    """Nothing is measured besides the scores."""
    return {}


@dataclass(frozen=True)
class Study(Table):
    """A table each of whose rows is searched for on the validation part, then trained.

    ``finals`` gives a row's runs, one a seed, from its name and the chosen candidate; ``measure``
    more figures for rows, from the finals of each and the place where their weights are.
    """

    name: str  # of its module, and of its file in book/results
    candidates: Runs  # for each row, those that compete
    finals: Callable[[str, Run], Sequence[Run]]
    measure: Callable[[Runs, Place], Rows] = no_more
    tolerance: float = 0.02  # of an accuracy trained again on another kind of machine

    @property
    def rows(self) -> list[str]:  # type: ignore[override]
        return list(self.candidates)

    def carry_out(self, place: Place, rows: Sequence[str] = (), workers: int = 1) -> None:
        """Trains what these rows, or else the missing ones, lack, and writes them."""
        if names := rows or self.missing(place):
            about = provenance()  # before the trainings: the repository may move on meanwhile
            gather(list(chain(*(self.candidates[name] for name in names))), workers, place)
            finals = {name: self.followers(name, place) for name in self.rows}
            gather(list(chain(*(finals[name] for name in names))), workers, place)
            table = {
                name: row(results(self.candidates[name], place), results(finals[name], place))
                for name in names
            }
            measured = self.measure({name: finals[name] for name in names if finals[name]}, place)
            for name, figures in measured.items():
                table[name] |= figures
            runs = {run.key: run for run in chain(*self.candidates.values(), *finals.values())}
            seconds = sum(stored["seconds"] or 0 for stored in results(list(runs.values()), place))
            seeds = sorted({run.recipe.seed for run in chain(*finals.values())})
            self.keep(table, place, seeds, about | {"seconds": round(seconds, 1)})
        print(printed(self.stored(place)))

    def followers(self, name: str, place: Place) -> Sequence[Run]:
        """The runs that follow a row's search: none, where every candidate diverged."""
        chosen = best(results(self.candidates[name], place))
        return [] if chosen is None else self.finals(name, self.candidates[name][chosen])

    def recheck(self, key: str, place: Place) -> int:
        """Trains a run again and compares; gives the exit code.

        ``key`` is how the run's key begins; the empty string is the first run that is stored.
        """
        rows = self.stored(place).values()
        keys = [k for stored in rows for k in (*stored["search"], *stored["runs"])]
        matches = [k for k in keys if k.startswith(key)]
        if not matches:
            return not_stored(f"run {key}...", self.name)
        old = json.loads(place.result(matches[0]).read_text())
        new = train_one(Run.of(old["run"]), place, keep=False)
        return agree(old["key"], old, score_differences(old, new, self.tolerance))


def score_differences(old: dict[str, Any], new: dict[str, Any], tolerance: float) -> list[str]:
    """How two results of a run differ: at all on one kind of machine, else by too much."""
    if same_machine(old, new) or not old["scores"] or not new["scores"]:
        return differences(old["scores"], new["scores"], {"rel_tol": 0})
    before, after = (
        {part: scores["accuracy"] for part, scores in result["scores"].items()}
        for result in (old, new)
    )
    return differences(before, after, {"rel_tol": 0, "abs_tol": tolerance})
