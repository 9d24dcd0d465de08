"""The command that every study has: ``python -m studies.NAME``."""

import argparse
import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from studies.cost import minutes
from studies.one import HERE, Place, Run, provenance, store, train_one
from studies.pool import gather, result
from studies.table import best, printed, row

Rows = dict[str, dict[str, Any]]


def no_more(finals: Mapping[str, Sequence[Run]], place: Place) -> Rows:
    """Nothing is measured beside the scores."""
    return {}


@dataclass(frozen=True)
class Study:
    """A table each of whose rows is searched for on the validation part, then trained.

    Args:
        name: Of its module, and of its file in ``book/results``.
        candidates: For each row, the runs that compete; the best on the validation part is chosen.
        finals: Gives a row's runs, one a seed, from its name and the chosen candidate.
        measure: Gives more figures for rows from the finals of each and the place where their
            weights are. Default: none.
        tolerance: How far an accuracy may be from the stored one when it is trained again on
            another kind of machine, where sums are rounded otherwise.
    """

    name: str
    candidates: Mapping[str, Sequence[Run]]
    finals: Callable[[str, Run], Sequence[Run]]
    measure: Callable[[Mapping[str, Sequence[Run]], Place], Rows] = no_more
    tolerance: float = 0.02


def main(study: Study, arguments: Sequence[str] | None = None, place: Place = HERE) -> int:
    """Does what is typed; gives the exit code: 1 if a recheck finds other scores, else 0."""
    parser = argparse.ArgumentParser(f"python -m studies.{study.name}")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes that train")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--list", action="store_true", help="say what would be trained, and the cost")
    one.add_argument("--recheck", nargs="?", const="", metavar="HASH",
                     help="train one run again, the first stored one by default")  # fmt: skip
    one.add_argument("--smoke", action="store_true", help="run the code in seconds, keep nothing")
    options = parser.parse_args(arguments)
    place = replace(place, command=f"python -m studies.{study.name}")
    if options.list:
        print(listed(study, place))
    elif options.recheck is not None:
        return recheck(study, options.recheck, place)
    elif options.smoke:
        with TemporaryDirectory() as folder:
            return smoke(study, replace(place, root=Path(folder), pictures=40))
    else:
        print(printed(carry_out(study, place, options.workers)["rows"]))
    return 0


def carry_out(study: Study, place: Place, workers: int) -> dict[str, Any]:
    """Trains what is missing, and writes the study's file."""
    about = provenance()  # before the trainings: the repository may move on meanwhile
    gather(list(chain(*study.candidates.values())), workers, place)
    finals = followers(study, place)
    gather(list(chain(*finals.values())), workers, place)
    rows = {
        name: row(stored(runs, place), stored(finals[name], place))
        for name, runs in study.candidates.items()
    }
    some = {name: runs for name, runs in finals.items() if runs}
    for name, more in study.measure(some, place).items():
        rows[name] |= more
    every = {run.key: run for run in chain(*study.candidates.values(), *finals.values())}
    seconds = [found["seconds"] or 0 for found in stored(list(every.values()), place)]
    found = {
        "study": study.name,
        "command": place.command,
        "config": hashlib.sha256("".join(sorted(every)).encode()).hexdigest()[:12],
        "seeds": sorted({run.recipe.seed for run in chain(*finals.values())}),
        "rows": rows,
        "seconds": round(sum(seconds), 1),
        **about,
    }
    store(found, place.root / "book/results" / f"{study.name}.json")
    return found


def followers(study: Study, place: Place, guess: bool = False) -> dict[str, Sequence[Run]]:
    """The runs that follow the search in each row: none, where every candidate diverged.

    Args:
        study: Its candidates are trained.
        place: Where their results are.
        guess: Where some are not trained, take the first in place of the best.
    """
    finals: dict[str, Sequence[Run]] = {}
    for name, runs in study.candidates.items():
        found = stored(runs, place)
        chosen = 0 if guess and len(found) < len(runs) else best(found)
        finals[name] = [] if chosen is None else study.finals(name, runs[chosen])
    return finals


def stored(runs: Sequence[Run], place: Place) -> list[dict[str, Any]]:
    """The results of those runs that have one."""
    return [found for run in runs if (found := result(run, place))]


def listed(study: Study, place: Place) -> str:
    """Every run with its state and about how many minutes of one thread it takes."""
    finals = followers(study, place, guess=True)
    lines, left = [], 0.0
    every = {run.key: (name, run) for name in study.candidates
             for run in (*study.candidates[name], *finals[name])}  # fmt: skip
    costs = minutes([run for _, run in every.values()])
    for key, (name, run) in every.items():
        done = result(run, place) is not None
        left += 0 if done else costs[key]
        rate, seed = run.recipe.learning_rate, run.recipe.seed
        said = "done" if done else "to train"
        lines.append(f"{key}  {name:20}rate {rate:<8g}seed {seed:<3}{costs[key]:7.1f} min  {said}")
    lines.append(
        f"{len(every)} runs, {sum(costs.values()):.0f} minutes of one thread in all, {left:.0f} of "
        "them to come. Where a search is not over, its first rate stands for the best."
    )
    return "\n".join(lines)


def recheck(study: Study, key: str, place: Place) -> int:
    """Trains one run again, keeping nothing, and compares; gives 1 if the scores differ, else 0.

    Args:
        study: The run is one of its.
        key: How the run's hash begins; the empty string is the first that is stored.
        place: Where the stored scores are.
    """
    finals = followers(study, place, guess=True)
    every = {run.key: run for run in chain(*study.candidates.values(), *finals.values())}
    known = [run for run in every.values() if run.key.startswith(key) and result(run, place)]
    if not known:
        print(f"no run {key}... of {study.name} is stored: --list names them", file=sys.stderr)
        return 2
    old = stored(known[:1], place)[0]
    new = train_one(known[0], place, keep=False)
    differences = compared(old, new, study.tolerance)
    print("\n".join([f"{old['key']} of {old['date']} ({old['commit']}):", *differences]))
    print("the scores differ" if differences else "the scores agree")
    return int(bool(differences))


def compared(old: dict[str, Any], new: dict[str, Any], tolerance: float) -> list[str]:
    """How two results of the same run differ: at all on one kind of machine, else by too much."""
    if not old["scores"] or not new["scores"]:
        same = old["scores"] == new["scores"]
        return [] if same else [f"diverged: {bool(old['diverged'])}, now {bool(new['diverged'])}"]
    exact = all(old[name] == new[name] for name in ("machine", "torch"))
    print("the same kind of machine: exact" if exact else f"another machine: within {tolerance}")
    differences = []
    for part, before in old["scores"].items():
        for name in before if exact else ["accuracy"]:
            a, b = before[name], new["scores"][part][name]
            if abs(a - b) > (0 if exact else tolerance):
                differences.append(f"{part} {name}: {a:.6f}, now {b:.6f}")
    return differences


def smoke(study: Study, place: Place) -> int:
    """Runs all the code of a study on two steps, a few pictures and at most two candidates."""

    def small(run: Run) -> Run:
        data = "SHAPES" if run.data == "CIFAR10" else run.data  # of the same format
        recipe = replace(run.recipe, steps=2, minutes=None, batch_size=10)
        return replace(run, data=data, recipe=recipe)

    little = replace(
        study,
        candidates={
            name: [small(run) for run in runs[:2]] for name, runs in study.candidates.items()
        },
        finals=lambda name, run: [small(final) for final in study.finals(name, run)[:2]],
    )
    print(printed(carry_out(little, place, workers=1)["rows"]))
    return recheck(little, "", place)
