"""The families that verdicts compare, as these read them.

Their long trainings; their searches at the best rate from three seeds, and at the next from one.
"""

from dataclasses import replace

from studies.families import ROWS, finals
from studies.runner.pool import results
from studies.runner.run import Run
from studies.runner.storage import Store
from studies.runner.study import Rows, Runs, Study
from studies.shared.lengths import curve
from studies.shared.small_models import RECIPE

BEST = {"gap": 1e-3, "attention_only": 1e-3, "mixer": 1e-2, "resnet": 3e-3, "feedforward": 3e-3}
MORE = {"gap": 5, "mixer": 5}  # seeds: of three, R76 was too uncertain to tell
TRIED = {name: ROWS[name] for name in BEST}
# The largest rate tried was the best for the Mixer, so a larger one competes.
LARGER = replace(RECIPE, learning_rate=3e-2, precision="float32")
TRIED["mixer"] = [*TRIED["mixer"], replace(TRIED["mixer"][0], recipe=LARGER)]


def compared(row: str, best: Run) -> list[Run]:
    if row.endswith(", long"):
        return finals(row.removesuffix(", long"), best)
    seeds = () if row.endswith(", next rate") else range(1, MORE.get(row, 3))
    others = (replace(best.recipe, seed=seed, precision="float32") for seed in seeds)
    return [best, *(replace(best, recipe=recipe) for recipe in others)]


def read(runs_of: Runs, store: Store) -> Rows:
    """Of each row, and of its next rate, what a verdict reads; lists over seeds."""
    rows: Rows = {}
    for name, runs in runs_of.items():
        done = results(runs, store)
        rows[name] = {
            "steps": runs[0].recipe.steps,
            "right": [one["scores"]["test"]["accuracy"] for one in done],
            "curve": [curve(one["curve"]) for one in done],
        }
    for name in BEST.keys() & rows.keys():
        held_out = {
            f"{one['run']['recipe']['learning_rate']:g}": one["scores"]["validation"]["accuracy"]
            for one in results(TRIED[name], store)
        }
        other = rows.get(f"{name}, next rate")
        rows[name] |= {"rate": BEST[name], "rates": held_out, "next": other}
    return rows


STUDY = Study(
    "families_again",
    TRIED
    | {f"{name}, long": tried for name, tried in TRIED.items()}
    | {
        f"{name}, next rate": [run for run in tried if run.recipe.learning_rate != BEST[name]]
        for name, tried in TRIED.items()
    },
    compared,
    read,
)
