"""``python -m course grade``: grades a file, or all that a folder or a zip has."""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from course.grading import filled, tables
from course.grading.answers import exercises
from course.grading.grade import CannotGrade, Graded, Rules, grade_all, read_points
from course.grading.handed_in import find
from course.grading.similar import alike

WAITS = "Not graded yet: the command was stopped before. Run it again to go on."


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade; 0 however the files are, 2 and one line where the grader cannot work."""
    options = _options(arguments)
    try:
        if not hasattr(os, "fork"):
            raise CannotGrade("grading needs Linux or macOS; on Windows it runs in WSL")
        with tempfile.TemporaryDirectory(prefix="handed-in-") as scratch:
            results = _graded(options, Path(scratch))
        _fill(options, results)
    except (ValueError, OSError, CannotGrade) as error:
        print(f"cannot grade: {error}", file=sys.stderr)
        return 2
    for lack in sorted({lack for each in results for lack in each.lacking}):
        print(f"not isolated: {lack}", file=sys.stderr)
    failed = sum(each.at_fault for each in results)
    if failed:
        print(f"{failed} not graded by the grader's own fault: see the table", file=sys.stderr)
    print(f"{len(results)} files: {options.out}/grades.csv")
    return 2 if failed else 0


def _graded(options: argparse.Namespace, scratch: Path) -> list[Graded]:
    """Grade all files; after each, the tables hold all that is known by then."""
    for path, fill in _tables(options).values():
        fill(path, {})  # so that what is wrong with one is said at once
    submissions = find(options.place, scratch)
    kept = tables.by_hand(options.out, [each.file for each in submissions])
    rules = Rules(
        chapter=options.chapter,
        points=read_points(options.points) if options.points else None,
        seconds=options.time,
        megabytes=options.memory,
        whole=options.whole,
        hidden=(options.place, options.out, scratch),
    )
    known = {each.file: Graded(each, problem=WAITS) for each in submissions}
    for done in grade_all(submissions, rules, options.jobs, options.out / ".done"):
        known[done.submission.file] = done
        results = tables.counted(known.values(), options.attempt == "last", kept)
        tables.write(options.out, results)
        who = f"{done.submission.file:32} {done.chapter[:2]:2} {done.points:6g}/{done.possible:g}"
        print(f"{who}  {tables.remark(done)[:140]}", flush=True)
    pairs = alike(results)
    results = [replace(each, alike=pairs.get(each.submission.person, "")) for each in results]
    tables.write(options.out, results)
    tables.write_pages(options.out, results)
    return results


def _fill(options: argparse.Namespace, results: Sequence[Graded]) -> None:
    """Fill the tables that Moodle and Canvas gave out, as far as they are given."""
    grades = {
        each.submission.id: filled.Grade(each.points, each.possible, tables.comment(each))
        for each in results
        if each.counts and each.submission.id
    }
    for name, (path, fill) in _tables(options).items():
        sheet, lost = fill(path, grades)
        sheet.save(options.out / name)
        print(f"{options.out / name}: {len(grades) - len(lost)} filled in")
        for each in results:
            if each.counts and (each.submission.id or "?") in lost | {"?"}:
                print(f"not in {path}: {each.submission.student}", file=sys.stderr)


def _tables(options: argparse.Namespace) -> dict[str, tuple[Path, Callable]]:
    """The tables to fill, by the name of the copy."""
    canvas = partial(filled.canvas, name=options.name)
    moodle = {"moodle.csv": (options.worksheet, filled.moodle)} if options.worksheet else {}
    return moodle | ({"canvas.csv": (options.gradebook, canvas)} if options.gradebook else {})


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m course grade", description=__doc__)
    parser.add_argument("place", type=Path, metavar="FILE|FOLDER")
    add = parser.add_argument
    add("--out", type=Path, default=Path("graded"), help="folder for the results (graded)")
    add("--chapter", type=int, choices=exercises(), metavar="N", help="the one chapter that counts")
    add("--points", type=Path, help="YAML or JSON: exercise: points; others do not count")
    add("--whole", action="store_true", help="no points for part of what a check asks")
    add("--attempt", choices=("best", "last"), default="best", help="which of several files counts")
    add("--worksheet", type=Path, metavar="CSV", help="Moodle's grading worksheet, to fill a copy")
    add("--gradebook", type=Path, metavar="CSV", help="Canvas's gradebook, to fill a copy")
    add("--name", default="", help="the assignment's name in it")
    add("--time", type=float, default=30.0, metavar="S", help="seconds an answer may take")
    add("--memory", type=int, default=2000, metavar="MB", help="that a call may allocate")
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="notebooks at a time")
    options = parser.parse_args(arguments)
    for name in ("time", "memory", "jobs"):
        value = getattr(options, name)
        if not 0 < value < float("inf"):
            parser.error(f"argument --{name}: got {value:g}, expected a number above 0")
    if (options.worksheet or options.gradebook) and options.chapter is None:
        parser.error("--worksheet and --gradebook need --chapter")
    return options
