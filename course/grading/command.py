"""``python -m course grade``: grades a notebook, or all of a folder."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from course.grading import tables
from course.grading.answers import exercises
from course.grading.grade import CannotGrade, Graded, Rules, Submission, grade_all, read_points

# What Canvas and Moodle name the files of a "download all".
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_.+")
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_\w+")


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade; 0 however the notebooks are, 2 and one line where the grader cannot work."""
    options = _parser().parse_args(arguments)
    if not hasattr(os, "fork"):
        return _complain("grading needs Linux or macOS; on Windows it runs in WSL")
    try:
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
        return _complain(str(error))
    tables.write(options.out, results, options.name)
    for lack in sorted({lack for each in results for lack in each.lacking}):
        print(f"not isolated: {lack}", file=sys.stderr)
    print(f"{len(results)} graded: {options.out}/grades.csv")
    return 0


def find(place: Path) -> list[Submission]:
    """The notebooks of a folder, those in folders inside it included, or the one given.

    Names stand for one notebook each: the file's is added where a student has several.

    Raises:
        ValueError: There is none.
    """
    if place.is_file():
        return [_submission(place, place.parent)]
    paths = [
        path
        for path in sorted(place.rglob("*.ipynb"))
        if not any(part.startswith(".") for part in path.relative_to(place).parts)
    ]
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


def _parser() -> argparse.ArgumentParser:
    above_zero = _number(float, lambda x: 0 < x < float("inf"), "a number above 0")
    whole = _number(int, lambda x: x > 0, "a whole number, at least 1")
    known = f"a chapter's number, {min(exercises())} to {max(exercises())}"
    chapter = _number(int, lambda x: x in exercises(), known)
    parser = argparse.ArgumentParser(prog="python -m course grade", description=__doc__)
    parser.add_argument("place", type=Path, metavar="FILE|FOLDER")
    add = parser.add_argument
    add("--out", type=Path, default=Path("graded"), help="folder for the results (graded)")
    add("--chapter", type=chapter, help="the one chapter that counts, by number")
    add("--points", type=Path, help="YAML or JSON: exercise: points; others do not count")
    add("--whole", action="store_true", help="no points for part of what a check asks")
    add("--name", default="", help="the assignment's name in Canvas")
    add("--time", type=above_zero, default=30.0, metavar="S", help="seconds an answer may take")
    add("--memory", type=whole, default=2000, metavar="MB", help="that a call may allocate")
    add("--jobs", type=whole, default=min(2, os.cpu_count() or 1), help="notebooks at a time")
    return parser


def _number(kind: type, fits: Callable[[float], bool], expected: str) -> Callable[[str], float]:
    """What reads an option's value and refuses one that does not fit."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(-1)
        if not fits(value):
            raise argparse.ArgumentTypeError(f"got {text!r}, expected {expected}")
        return value

    return read


def _report(each: Graded) -> None:
    who = f"{each.submission.student:24} {each.chapter[:2]:2} {each.points:6g}/{each.possible:g}"
    print(f"{who}  {tables.remark(each)[:140]}", flush=True)


def _complain(text: str) -> int:
    print(f"cannot grade: {text}", file=sys.stderr)
    return 2
