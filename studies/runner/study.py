"""A study that trains: a search for each row of its table, then a run for each seed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

import numpy as np
from scipy import stats

from studies.runner.pool import gather, results
from studies.runner.run import Run, train_one
from studies.runner.storage import Figures, Store, differences, provenance, same_machine
from studies.runner.survey import Rows, Table, agree

Runs = Mapping[str, Sequence[Run]]
TOLERANCE = 0.02  # of an accuracy trained again on another kind of machine


@dataclass(frozen=True)
class Study(Table):
    """A table each of whose rows is searched for on the validation part, then trained.

    ``finals`` gives a row's runs, one a seed, from its name and the chosen candidate; ``measure``
    more figures for rows, from the finals of each and the place where their weights are.
    """

    name: str  # of its file in book/results
    rows: Runs  # for each, those that compete
    finals: Callable[[str, Run], Sequence[Run]]
    measure: Callable[[Runs, Store], Rows] | None = None

    def carry_out(self, store: Store, rows: Sequence[str] = (), workers: int = 1) -> None:
        """Trains what these rows, or else the missing ones, lack, and writes them."""
        names = rows or self.missing(store)
        about = provenance()  # before the trainings: the repository may move on meanwhile
        gather(list(chain(*(self.rows[name] for name in names))), workers, store)
        finals = {name: self.followers(name, store) for name in self.rows}
        gather(list(chain(*(finals[name] for name in names))), workers, store)
        table = {
            name: row(results(self.rows[name], store), results(finals[name], store))
            for name in names
        }
        if self.measure:
            measured = self.measure({name: finals[name] for name in names if finals[name]}, store)
            for name, figures in measured.items():
                table[name] |= figures
        if names:
            runs = {run.key: run for run in chain(*self.rows.values(), *finals.values())}
            seconds = sum(stored["seconds"] or 0 for stored in results(list(runs.values()), store))
            seeds = sorted({run.recipe.seed for run in chain(*finals.values())})
            self.keep(table, store, seeds, about | {"seconds": round(seconds, 1)})
        for name, figures in self.stored(store).items():
            text = "diverged"
            if accuracy := figures.get("accuracy"):
                text = "{mean:.2%} ({low:.2%} to {high:.2%})".format(**accuracy)
            print(f"{name:20}{text:>28}{figures['parameters']:12,} parameters")

    def followers(self, name: str, store: Store) -> Sequence[Run]:
        """The runs that follow a row's search: none, where every candidate diverged."""
        chosen = best(results(self.rows[name], store))
        return [] if chosen is None else self.finals(name, self.rows[name][chosen])

    def recheck(self, key: str, store: Store) -> int:
        """Trains the run whose key begins so, or the first, again; gives the exit code."""
        rows = self.stored(store).values()
        keys = [k for stored in rows for k in (*stored["search"], *stored["runs"])]
        matches = [k for k in keys if k.startswith(key)]
        if not matches:
            return self.not_stored(f"run {key}...")
        old = json.loads(store.result(matches[0]).read_text())
        new = train_one(Run.of(old["run"]), store, keep=False)
        return agree(old["key"], old, score_differences(old, new))


def score_differences(old: Figures, new: Figures) -> list[str]:
    """How two results of a run differ: at all on one kind of machine, else by too much."""
    if same_machine(old, new) or not old["scores"] or not new["scores"]:
        return differences(old["scores"], new["scores"], {"rel_tol": 0})
    before, after = (
        {part: scores["accuracy"] for part, scores in result["scores"].items()}
        for result in (old, new)
    )
    return differences(before, after, {"rel_tol": 0, "abs_tol": TOLERANCE})


def best(candidates: Sequence[Figures]) -> int | None:
    """The index of the run with the best validation accuracy; none, if all diverged.

    Equal accuracies, as on a small validation part, are decided by the likelihood.
    """
    held_out = {}
    for i, candidate in enumerate(candidates):
        if candidate["scores"]:
            scores = candidate["scores"]["validation"]
            held_out[i] = scores["accuracy"], scores["log_likelihood"]
    return max(held_out, key=held_out.__getitem__) if held_out else None


def row(candidates: Sequence[Figures], finals: Sequence[Figures]) -> Figures:
    """The search, the runs that followed, one a seed (none, where every candidate diverged), and
    their scores on the test part."""
    first = (finals or candidates)[0]  # what follows a search may be of another size
    about = {
        "search": {
            run["key"]: run["scores"] and run["scores"]["validation"]["accuracy"]
            for run in candidates
        },
        "runs": [run["key"] for run in finals],
        "parameters": first["parameters"],
        "operations": first["operations"],
        "diverged": sum(not run["scores"] for run in finals or candidates),
    }
    scores = [run["scores"] for run in finals if run["scores"]]
    if not scores:
        return about
    tests = [parts["test"] for parts in scores]
    values = [test["accuracy"] for test in tests]
    low, high = interval(values, tests[0]["pictures"])
    over = "seeds" if len(values) > 1 else "test pictures"
    accuracy = {"mean": fmean(values), "low": low, "high": high, "over": over, "values": values}
    return about | {
        "accuracy": accuracy,
        "log_likelihood": fmean(test["log_likelihood"] for test in tests),
        "calibration_error": fmean(test["calibration_error"] for test in tests),
        "train_accuracy": fmean(parts["train"]["accuracy"] for parts in scores),
        "scores": scores,
    }


def interval(accuracies: Sequence[float], pictures: int) -> tuple[float, float]:
    """The 95 % interval of accuracies on this many images, one a seed: Student's, of their mean.

    A single one gets Wilson's, for the choice of test images; another seed can move it further.
    """
    if len(accuracies) == 1:
        right = round(accuracies[0] * pictures)
        wilson = stats.binomtest(right, pictures).proportion_ci(method="wilson")
        return float(wilson.low), float(wilson.high)
    half = stats.sem(accuracies) * stats.t.ppf(0.975, len(accuracies) - 1)
    return float(np.mean(accuracies) - half), float(np.mean(accuracies) + half)
