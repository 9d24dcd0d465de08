"""The command of every study: ``python -m studies NAME``."""

import argparse
import json
import os
import pkgutil
from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from types import ModuleType

import studies
from studies.runner.publish import publish
from studies.runner.storage import HERE, ROOT, Store
from studies.runner.study import Study
from studies.runner.survey import Survey

# The modules that hold several studies, each in a few lines; the others are named as their own.
SEVERAL = {
    "small_trainings": ["augmentation", "best_small_vit", "digits", "heads", "long_trainings",
                        "positions", "random_labels", "residual", "stems", "width"],
    "inversions": ["inversion_at_the_criterion", "inversion_by_depth", "inversion_in_miniature",
                   "inversion_rates"],
    "unwinding": ["inversion_by_descent", "unwinding", "unwinding_from_nearby"],
    "climbing": ["unwinding_after_a_climb", "way_back"],
}  # fmt: skip
MODULES = [m.name for m in pkgutil.iter_modules(studies.__path__) if not m.ispkg]
NAMES = sorted({*MODULES} - {"__main__", *SEVERAL} | {*chain(*SEVERAL.values())})


def module_of(name: str) -> ModuleType:
    return import_module(f"studies.{next((m for m in SEVERAL if name in SEVERAL[m]), name)}")


def load(name: str) -> Study | Survey:
    module = module_of(name)
    return module.STUDY if hasattr(module, "STUDY") else getattr(module, name)


def hours() -> str:
    """A line for each study: core-hours of its stored rows, and of three and ten times as many."""
    lines = [f"{'study':26}{'rows':>5}{'core-hours':>12}{'3 times':>9}{'10 times':>9}"]
    for name in NAMES:
        path = HERE.table(name)
        table = json.loads(path.read_text()) if path.exists() else {"rows": {}}
        rows = table["rows"].values()
        each = sum(row.get("seconds") or 0 for row in rows)  # of a study that trains, one for all
        spent = (each or table.get("seconds") or 0) / 3600
        lines.append(f"{name:26}{len(rows):5}{spent:12.2f}{3 * spent:9.1f}{10 * spent:9.1f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; gives the exit code: 1 if a recheck finds other figures, else 0."""
    parser = argparse.ArgumentParser(
        "python -m studies", description="The trainings and measurements behind book/results."
    )
    parser.add_argument("name", choices=["hours", *NAMES], metavar="NAME",
                        help=f"one of {', '.join(NAMES)}, or hours: what each took")  # fmt: skip
    parser.add_argument("--rows", nargs="+", default=[], metavar="ROW",
                        help="compute these again (default: what is missing)")  # fmt: skip
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="that train at once")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--list", action="store_true", help="list the rows and what is missing")
    mode.add_argument("--recheck", nargs="?", const="", metavar="ROW or RUN",
                      help="compute a row, or train a run, by its hash, again and compare, keeping "
                      "nothing (default: the first)")  # fmt: skip
    mode.add_argument("--publish", nargs=2, metavar=("ROW", "MODEL"),
                      help="ship the first run of a row with the package, as MODEL")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.name == "hours":
        print(hours())
        return 0
    study, store = load(options.name), Store(ROOT, f"python -m studies {options.name}")
    if unknown := {*options.rows, *(options.publish or ())[:1]} - set(study.rows):
        parser.error(f"no rows {', '.join(unknown)}: expected some of {', '.join(study.rows)}")
    if options.recheck is not None:
        return study.recheck(options.recheck, store)
    if options.publish:
        row, model = options.publish
        for kind, scores in publish(options.name, row, model, store).items():
            print(f"{kind:8} {scores.accuracy:.4f}")
    elif options.list:
        print(study.listed(store))
    else:
        study.carry_out(store, options.rows, options.workers)
    return 0
