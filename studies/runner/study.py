"""A study that trains: a search for each row of its table, then a run for each seed."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from studies.runner.cost import minutes
from studies.runner.pool import gather, result, results
from studies.runner.run import Run, train_one
from studies.runner.storage import Place, agree, compared, provenance, same_machine, store
from studies.runner.table import best, printed, row

Rows = dict[str, dict[str, Any]]


def no_more(finals: Mapping[str, Sequence[Run]], place: Place) -> Rows:
    """Nothing is measured besides the scores."""
    return {}


@dataclass(frozen=True)
class Study:
    """A table each of whose rows is searched for on the validation part, then trained.

    Args:
        name: Of its module, and of its file in ``book/results``.
        candidates: For each row, the runs that compete; the best on the validation part is chosen.
        finals: Gives a row's runs, one a seed, from its name and the chosen candidate.
        measure: Gives more figures for rows from the finals of each and the place where their
            weights are.
        tolerance: How much an accuracy may differ from the stored one when it is trained again on
            another kind of machine, which rounds sums differently.
    """

    name: str
    candidates: Mapping[str, Sequence[Run]]
    finals: Callable[[str, Run], Sequence[Run]]
    measure: Callable[[Mapping[str, Sequence[Run]], Place], Rows] = no_more
    tolerance: float = 0.02

    def carry_out(self, place: Place, workers: int) -> None:
        """Trains what is missing, writes the study's file and prints its table."""
        about = provenance()  # before the trainings: the repository may move on meanwhile
        gather(list(chain(*self.candidates.values())), workers, place)
        finals = self.followers(place)
        gather(list(chain(*finals.values())), workers, place)
        rows = {
            name: row(results(runs, place), results(finals[name], place))
            for name, runs in self.candidates.items()
        }
        some = {name: runs for name, runs in finals.items() if runs}
        for name, more in self.measure(some, place).items():
            rows[name] |= more
        every = [run for _, run in self.every(finals).values()]
        seconds = [found["seconds"] or 0 for found in results(every, place)]
        found = {
            "study": self.name,
            "command": place.command,
            "seeds": sorted({run.recipe.seed for run in chain(*finals.values())}),
            "rows": rows,
            "seconds": round(sum(seconds), 1),
            **about,
        }
        store(found, place.table(self.name))
        print(printed(rows))

    def followers(self, place: Place, guess: bool = False) -> dict[str, Sequence[Run]]:
        """The runs that follow the search in each row: none, where every candidate diverged.

        With ``guess``, the first candidate stands for the best where some are not trained yet.
        """
        finals: dict[str, Sequence[Run]] = {}
        for name, runs in self.candidates.items():
            found = results(runs, place)
            chosen = 0 if guess and len(found) < len(runs) else best(found)
            finals[name] = [] if chosen is None else self.finals(name, runs[chosen])
        return finals

    def every(self, finals: Mapping[str, Sequence[Run]]) -> dict[str, tuple[str, Run]]:
        """By key, each run once, with its row."""
        return {
            run.key: (name, run)
            for name, runs in self.candidates.items()
            for run in (*runs, *finals[name])
        }

    def listed(self, place: Place) -> str:
        """Every run with its state and about how many minutes of one thread it takes."""
        every = self.every(self.followers(place, guess=True))
        costs = minutes([run for _, run in every.values()])
        lines = []
        left = 0.0
        for key, (name, run) in every.items():
            done = result(run, place) is not None
            left += 0 if done else costs[key]
            rate, seed = run.recipe.learning_rate, run.recipe.seed
            said = f"{costs[key]:7.1f} min  {'done' if done else 'to train'}"
            lines.append(f"{key}  {name:20}rate {rate:<8g}seed {seed:<3}{said}")
        lines.append(
            f"{len(every)} runs, {sum(costs.values()):.0f} minutes of one thread in all, "
            f"{left:.0f} of them to come. Where a search is not over, its first rate stands for "
            "the best."
        )
        return "\n".join(lines)

    def recheck(self, key: str, place: Place) -> int:
        """Trains a run again and compares; gives 1 if scores differ, 2 if it is not stored, else 0.

        ``key`` is how the run's key begins; the empty string is the first run that is stored.
        """
        every = self.every(self.followers(place, guess=True))
        known = [run for found, (_, run) in every.items() if found.startswith(key)]
        stored = results(known, place)
        if not stored:
            print(f"no run {key}... of {self.name} is stored: --list names them", file=sys.stderr)
            return 2
        old = stored[0]
        new = train_one(every[old["key"]][1], place, keep=False)
        return agree(old["key"], old, scores_compared(old, new, self.tolerance))

    def smoke(self, place: Place) -> int:
        """Runs all the code on two steps, a few images and at most two candidates."""
        little = replace(
            self,
            candidates={
                name: [_little(run) for run in runs[:2]] for name, runs in self.candidates.items()
            },
            finals=lambda name, run: [_little(final) for final in self.finals(name, run)[:2]],
        )
        with TemporaryDirectory() as folder:
            place = replace(place, root=Path(folder), pictures=40)
            little.carry_out(place, workers=1)
            return little.recheck("", place)


def _little(run: Run) -> Run:
    data = "SHAPES" if run.data == "CIFAR10" else run.data  # of the same format
    recipe = replace(run.recipe, steps=2, minutes=None, batch_size=10)
    return replace(run, data=data, recipe=recipe)


def scores_compared(old: dict[str, Any], new: dict[str, Any], tolerance: float) -> list[str]:
    """How two results of a run differ: at all on one kind of machine, else by too much."""
    if same_machine(old, new) or not old["scores"] or not new["scores"]:
        return compared(old["scores"], new["scores"], {"rel_tol": 0})
    before, after = (
        {part: scores["accuracy"] for part, scores in found["scores"].items()}
        for found in (old, new)
    )
    return compared(before, after, {"rel_tol": 0, "abs_tol": tolerance})
