"""``python -m course grade``: grades a notebook, or all of a folder."""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from course.grading import tables
from course.grading.chapters import exercises
from course.grading.grade import CannotGrade, Graded, Rules, grade_all
from course.grading.page import page
from course.grading.points import read_points
from course.grading.submissions import find


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade; 0 however the notebooks are, 2 and one line where the grader cannot work."""
    options = _parser().parse_args(arguments)
    if not hasattr(os, "fork"):
        return _complain("grading needs Linux or macOS; on Windows it runs in WSL")
    try:
        found = find(options.place)
        rules = Rules(
            chapter=options.chapter,
            points=read_points(options.points) if options.points else None,
            seconds=options.time,
            megabytes=options.memory,
            whole=options.whole,
            hidden=(options.place, options.out),
        )
        options.out.mkdir(parents=True, exist_ok=True)
        graded = grade_all(found, rules, options.jobs, _say)
    except (ValueError, OSError, CannotGrade) as error:
        return _complain(str(error))
    write(options.out, graded, options.name)
    for lack in sorted({lack for each in graded for lack in each.lacking}):
        print(f"not isolated: {lack}", file=sys.stderr)
    print(f"{len(graded)} graded: {options.out}/grades.csv")
    return 0


def write(out: Path, graded: Sequence[Graded], assignment: str = "") -> None:
    """Write all tables, and a folder with a page and Gradescope's file for each student."""
    chapters = {each.chapter for each in graded if each.chapter}
    name = assignment or ", ".join(sorted(chapters)) or "minivit"
    tables.write_csv(out / "grades.csv", graded)
    tables.write_canvas(out / "canvas.csv", graded, name)
    tables.write_moodle(out / "moodle.csv", graded)
    everything = [tables.as_json(each) for each in graded]
    (out / "grades.json").write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    for each in graded:
        own = out / "students" / re.sub(r"[^\w .()-]", "_", each.submission.student)
        own.mkdir(parents=True, exist_ok=True)
        (own / "report.html").write_text(page(each), encoding="utf-8")
        scope = json.dumps(tables.as_gradescope(each), indent=1)
        (own / "results.json").write_text(scope + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m course grade", description=__doc__)
    parser.add_argument("place", type=Path, metavar="FILE|FOLDER")
    add = parser.add_argument
    add("--out", type=Path, default=Path("graded"), help="folder for the results (graded)")
    add("--chapter", type=_chapter, help="the one chapter that counts, by number")
    add("--points", type=Path, help="YAML or JSON: exercise: points; others do not count")
    add("--whole", action="store_true", help="no points for part of what a check asks")
    add("--name", default="", help="the assignment's name in Canvas")
    add("--time", type=_above_zero, default=30.0, metavar="S", help="seconds an answer may take")
    add("--memory", type=_whole, default=2000, metavar="MB", help="that a call may allocate")
    add("--jobs", type=_whole, default=min(2, os.cpu_count() or 1), help="notebooks at a time")
    return parser


def _chapter(text: str) -> int:
    if not text.isdecimal() or int(text) not in exercises():
        known = f"{min(exercises())} to {max(exercises())}"
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a chapter's number, {known}")
    return int(text)


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number above 0")
    return value


def _whole(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a whole number, at least 1")
    return int(text)


def _say(each: Graded) -> None:
    who = f"{each.submission.student:24} {each.chapter[:2]:2} {each.points:6g}/{each.possible:g}"
    print(f"{who}  {tables.remark(each)[:140]}", flush=True)


def _complain(text: str) -> int:
    print(f"cannot grade: {text}", file=sys.stderr)
    return 2
