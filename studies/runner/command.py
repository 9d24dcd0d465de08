"""The command of every study: ``python -m studies NAME``."""

import argparse
import importlib
import os
import pkgutil
from collections.abc import Sequence
from dataclasses import replace

import studies
from studies.runner.storage import HERE, Place
from studies.runner.study import Study
from studies.runner.survey import Survey

NAMES = [m.name for m in pkgutil.iter_modules(studies.__path__) if not m.ispkg and m.name[0] != "_"]


def load(name: str) -> Study | Survey:
    """The study of this name."""
    found: Study | Survey = importlib.import_module(f"studies.{name}").STUDY
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        "python -m studies", description="The trainings and measurements behind book/results."
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="NAME --help explains them")
    given = parser.parse_args(arguments)
    return command(load(given.name), given.options)


def command(study: Study | Survey, arguments: Sequence[str], place: Place = HERE) -> int:
    """Runs one study; gives the exit code: 1 if a recheck finds other figures, else 0."""
    typed = f"python -m studies {study.name}"
    place = replace(place, command=typed)
    parser = argparse.ArgumentParser(typed)
    if isinstance(study, Study):
        parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes to use")
        one = "run, by its hash"
    else:
        parser.add_argument(
            "--rows",
            nargs="+",
            choices=study.rows,
            metavar="ROW",
            default=[],
            help="measure these again (default: what is missing)",
        )
        one = "row"
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--list", action="store_true", help="list what there is and what is missing")
    mode.add_argument(
        "--recheck",
        nargs="?",
        const="",
        help=f"compute a {one}, again and compare, keeping nothing (default: the first)",
    )
    mode.add_argument("--smoke", action="store_true", help="run the code in seconds, keep nothing")
    options = parser.parse_args(arguments)
    if options.list:
        print(study.listed(place))
    elif options.recheck is not None:
        return study.recheck(options.recheck, place)
    elif options.smoke:
        return study.smoke(place)
    elif isinstance(study, Study):
        study.carry_out(place, options.workers)
    else:
        study.carry_out(place, options.rows)
    return 0
