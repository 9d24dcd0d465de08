"""``python -m course grade``: grades a notebook, or all of a folder."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from course.grading import tables
from course.grading.answers import exercises
from course.grading.grade import CannotGrade, Graded, Rules, Submission, grade_all, read_points

# What Canvas and Moodle name the files of a "download all".
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_.+")
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_\w+")


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade; 0 however the notebooks are, 2 and one line where the grader cannot work."""
    options = _options(arguments)
    try:
        if not hasattr(os, "fork"):
            raise CannotGrade("grading needs Linux or macOS; on Windows it runs in WSL")
        submissions = find(options.place)
        rules = Rules(
            chapter=options.chapter,
            points=read_points(options.points) if options.points else None,
            seconds=options.time,
            megabytes=options.memory,
            whole=options.whole,
            hidden=(options.place, options.out),
        )
        options.out.mkdir(parents=True, exist_ok=True)
        results = grade_all(submissions, rules, options.jobs, _report)
    except (ValueError, OSError, CannotGrade) as error:
        print(f"cannot grade: {error}", file=sys.stderr)
        return 2
    tables.write(options.out, results, options.name)
    for lack in sorted({lack for each in results for lack in each.lacking}):
        print(f"not isolated: {lack}", file=sys.stderr)
    print(f"{len(results)} graded: {options.out}/grades.csv")
    return 0


def find(place: Path) -> list[Submission]:
    """The notebooks of a folder, those in folders inside it included, or the one given.

    Names stand for one notebook each: the file's is added where a student has several.
    """
    if place.is_file():
        return [_submission(place, place.parent)]
    paths = sorted(place.rglob("*.ipynb"))
    paths = [p for p in paths if "/." not in f"/{p.relative_to(place).as_posix()}"]
    if not paths:
        what = "has no notebook (*.ipynb) in it" if place.is_dir() else "does not exist"
        raise ValueError(f"{place} {what}")
    submissions = [_submission(path, place) for path in paths]
    names = [each.student for each in submissions]
    return [
        Submission(each.path, f"{each.student} ({each.path.stem})", each.id)
        if names.count(each.student) > 1
        else each
        for each in submissions
    ]


def _submission(path: Path, place: Path) -> Submission:
    *folders, _ = path.relative_to(place).parts
    match = next(filter(None, map(MOODLE.fullmatch, folders)), None) or CANVAS.fullmatch(path.stem)
    if match:
        return Submission(path, match["name"], match["id"])
    return Submission(path, folders[0] if folders else path.stem)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m course grade", description=__doc__)
    parser.add_argument("place", type=Path, metavar="FILE|FOLDER")
    add = parser.add_argument
    add("--out", type=Path, default=Path("graded"), help="folder for the results (graded)")
    add("--chapter", type=int, choices=exercises(), metavar="N", help="the one chapter that counts")
    add("--points", type=Path, help="YAML or JSON: exercise: points; others do not count")
    add("--whole", action="store_true", help="no points for part of what a check asks")
    add("--name", default="", help="the assignment's name in Canvas")
    add("--time", type=float, default=30.0, metavar="S", help="seconds an answer may take")
    add("--memory", type=int, default=2000, metavar="MB", help="that a call may allocate")
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="notebooks at a time")
    options = parser.parse_args(arguments)
    for name in ("time", "memory", "jobs"):
        value = getattr(options, name)
        if not 0 < value < float("inf"):
            parser.error(f"argument --{name}: got {value:g}, expected a number above 0")
    return options


def _report(each: Graded) -> None:
    who = f"{each.submission.student:24} {each.chapter[:2]:2} {each.points:6g}/{each.possible:g}"
    print(f"{who}  {tables.remark(each)[:140]}", flush=True)
