"""Grades as files: CSV, Canvas, Moodle, JSON, Gradescope, and a page for each student.

Canvas and Moodle take a file whose columns have these names; a row is found by the id that is in
the names of the files that they gave out. No server has been tried.
"""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from jinja2 import Template

from course.grading.grade import Graded

PUBLIC = "visible"  # every check is public, so a student may see all of it
TEMPLATE = Path(__file__).with_name("report.html").read_text(encoding="utf-8")


def write(out: Path, results: Sequence[Graded], assignment: str = "") -> None:
    """Write all tables, and a folder with a page and Gradescope's file for each student."""
    chapters = sorted({each.chapter for each in results if each.chapter})
    name = assignment or ", ".join(chapters) or "minivit"
    _write_csv(out / "grades.csv", points_table(results))
    _write_csv(out / "canvas.csv", canvas_table(results, name))
    _write_csv(out / "moodle.csv", moodle_table(results))
    _write_json(out / "grades.json", [as_json(each) for each in results])
    for each in results:
        own = out / "students" / re.sub(r"[^\w .()-]", "_", each.submission.student)
        own.mkdir(parents=True, exist_ok=True)
        (own / "report.html").write_text(page(each), encoding="utf-8")
        _write_json(own / "results.json", as_gradescope(each))


def points_table(results: Sequence[Graded]) -> Iterable[Sequence]:
    """A row for each notebook: points for each exercise, and the first message."""
    names = list(dict.fromkeys(mark.name for each in results for mark in each.marks))
    yield ["student", "id", "chapter", "points", "possible", *names, "remark"]
    for each in results:
        points = {mark.name: mark.points for mark in each.marks}
        whose = [each.submission.student, each.submission.id, each.chapter]
        own = [points.get(name, "") for name in names]
        yield [*whose, each.points, each.possible, *own, remark(each)]


def canvas_table(results: Sequence[Graded], assignment: str) -> Iterable[Sequence]:
    """Canvas's gradebook: Grades, Import."""
    yield ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", assignment]
    yield ["    Points Possible", "", "", "", "", max(each.possible for each in results)]
    for each in results:
        yield [each.submission.student, each.submission.id, "", "", "", each.points]


def moodle_table(results: Sequence[Graded]) -> Iterable[Sequence]:
    """Moodle's offline grading worksheet: View all submissions, Upload grading worksheet."""
    yield ["Identifier", "Full name", "Grade", "Maximum grade", "Feedback comments"]
    for each in results:
        whose = f"Participant {each.submission.id}" if each.submission.id else ""
        lines = (f"{m.name} ({m.points:g} of {m.possible:g}): {m.sentence}" for m in each.marks)
        comment = each.problem or "\n".join(lines)
        yield [whose, each.submission.student, each.points, each.possible, comment]


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
        "exercises": [asdict(mark) for mark in each.marks],
        "isolation_lacks": each.lacking,
        "seconds": round(each.seconds, 1),
    }


def as_gradescope(each: Graded) -> dict:
    """What Gradescope reads from /autograder/results/results.json."""
    tests = [
        {
            "name": mark.name,
            "score": mark.points,
            "max_score": mark.possible,
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
    }
    return result | ({"tests": tests} if tests else {})


def remark(each: Graded) -> str:
    """The first thing to know of a notebook, in one line."""
    if each.problem:
        return each.problem
    first = next((mark for mark in each.marks if mark.state != "passed"), None)
    return f"{first.name}: {first.sentence}" if first else "all passed"


def page(each: Graded) -> str:
    """The page that a student gets, as HTML that needs nothing beside it."""
    facts = {
        "name": each.submission.student,
        "chapter": each.chapter.replace("_", " "),
        "points": f"{each.points:g} of {each.possible:g}",
        "marks": () if each.problem else each.marks,
        "problem": each.problem,
    }
    return Template(TEMPLATE, autoescape=True).render(facts) + "\n"


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _write_csv(path: Path, rows: Iterable[Sequence]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([_harmless(value) for value in row] for row in rows)


def _harmless(value: object) -> object:
    """Names of files are the students': a spreadsheet would run one that begins with ``=``."""
    risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if risky else value
