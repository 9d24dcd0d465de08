"""Grades as files that other systems read: CSV, Canvas, Moodle, JSON, Gradescope.

Canvas and Moodle take a file whose columns have these names; a row is found by the id that is in
the names of the files that they gave out. No server has been tried.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from course.grading.grade import Graded

PUBLIC = "visible"  # every check is public, so a student may see all of it


def write_csv(path: Path, graded: Sequence[Graded]) -> None:
    """A row for each notebook: points for each exercise, and the first message."""
    names = list(dict.fromkeys(mark.exercise for each in graded for mark in each.marks))
    rows: list[list] = [["student", "id", "chapter", "points", "possible", *names, "remark"]]
    for each in graded:
        points = {mark.exercise: mark.points for mark in each.marks}
        whose = [each.submission.student, each.submission.id, each.chapter]
        own = [points.get(name, "") for name in names]
        rows.append([*whose, each.points, each.possible, *own, remark(each)])
    _write(path, rows)


def write_canvas(path: Path, graded: Sequence[Graded], assignment: str) -> None:
    """Canvas's gradebook: Grades, Import."""
    possible = max(each.possible for each in graded)
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", assignment]
    rows: list[list] = [head, ["    Points Possible", "", "", "", "", possible]]
    for each in graded:
        rows.append([each.submission.student, each.submission.id, "", "", "", each.points])
    _write(path, rows)


def write_moodle(path: Path, graded: Sequence[Graded]) -> None:
    """Moodle's offline grading worksheet: View all submissions, Upload grading worksheet."""
    rows: list[list] = [
        ["Identifier", "Full name", "Grade", "Maximum grade", "Feedback comments"],
    ]
    for each in graded:
        whose = f"Participant {each.submission.id}" if each.submission.id else ""
        row = [whose, each.submission.student, each.points, each.possible, comment(each)]
        rows.append(row)
    _write(path, rows)


def as_json(each: Graded) -> dict:
    """All that is known of a graded notebook."""
    return {
        "student": each.submission.student,
        "id": each.submission.id,
        "notebook": each.submission.path.name,
        "chapter": each.chapter,
        "points": each.points,
        "possible": each.possible,
        "problem": each.problem,
        "exercises": [
            {
                "name": mark.exercise,
                "state": mark.state,
                "message": mark.message,
                "share": round(mark.share, 4),
                "points": mark.points,
                "possible": mark.out_of,
                "notes": list(mark.notes),
            }
            for mark in each.marks
        ],
        "isolation_lacks": list(each.lacking),
        "seconds": round(each.seconds, 1),
    }


def as_gradescope(each: Graded) -> dict:
    """What Gradescope reads from /autograder/results/results.json."""
    tests = [
        {
            "name": mark.exercise,
            "score": mark.points,
            "max_score": mark.out_of,
            "status": "passed" if mark.state == "passed" else "failed",
            "output": mark.sentence,
            "visibility": PUBLIC,
        }
        for mark in each.marks
    ]
    result = {
        "score": each.points,
        "execution_time": round(each.seconds, 1),
        "output": each.problem,
        "visibility": PUBLIC,
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    return result if tests else {name: value for name, value in result.items() if name != "tests"}


def remark(each: Graded) -> str:
    """The first thing to know of a notebook, in one line."""
    if each.problem:
        return each.problem
    first = next((mark for mark in each.marks if mark.state != "passed"), None)
    return f"{first.exercise}: {first.sentence}" if first else "all passed"


def comment(each: Graded) -> str:
    """What a student is told, a line for each exercise."""
    lines = (f"{m.exercise} ({m.points:g} of {m.out_of:g}): {m.sentence}" for m in each.marks)
    return each.problem or "\n".join(lines)


def _write(path: Path, rows: Iterable[Sequence]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([_harmless(value) for value in row] for row in rows)


def _harmless(value: object) -> object:
    """Names of files are the students': a spreadsheet would run one that begins with ``=``."""
    risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if risky else value
