"""Grades as files: CSV, JSON, Gradescope's, and a page for each student."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from jinja2 import Template

from course.grading.filled import Sheet, number
from course.grading.grade import Graded
from minivit.files import atomic_write

PUBLIC = "visible"  # every check is public, so a student may see all of it
REPORT = Template(Path(__file__).with_name("report.html").read_text("utf-8"), autoescape=True)
OURS = ("student", "id", "file", "chapter", "counts", "points", "possible")
THEIRS = ("points by hand", "comment")  # columns of grades.csv that are the teacher's
ByHand = Mapping[str, tuple[str, str]]  # by file


def counted(results: Iterable[Graded], last: bool, kept: ByHand) -> list[Graded]:
    """What came of each file, with what a teacher added, and whether it counts.

    Of a student's files for a chapter the one does that has points by hand, else the best or the
    last; of those in which nothing was graded one does where there are no others.
    """
    listed = [
        replace(each, by_hand=by_hand, comment=comment)
        for each in results
        for by_hand, comment in [kept.get(each.submission.file, ("", ""))]
    ]
    done = {each.submission.person for each in listed if each.marks or each.by_hand}
    first: dict[tuple, tuple] = {}
    for i, each in enumerate(listed):
        of, sound = each.submission, bool(each.marks or each.by_hand)
        rank = (each.by_hand != "", not last and each.points, of.turn, of.file), i
        if sound or of.person not in done:
            group = of.person, sound and each.chapter
            first[group] = max(rank, first.get(group, rank))
    chosen = {i for _, i in first.values()}
    return [replace(each, counts=i in chosen) for i, each in enumerate(listed)]


def write(out: Path, results: Sequence[Graded]) -> None:
    """Write the tables anew; whatever stops this leaves the old ones."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(points_table(results))
    save(out / "grades.csv", "\ufeff" + text.getvalue())  # the mark lets Excel read UTF-8
    save(out / "grades.json", json.dumps([as_json(each) for each in results], indent=1) + "\n")


def write_pages(out: Path, results: Iterable[Graded]) -> None:
    """For each student a folder with a page, and what Gradescope reads, of what counts."""
    whose = [(each, _folder(each.submission.student)) for each in results if each.counts]
    alike = Counter(name.casefold() for _, name in whose)
    for each, name in whose:
        of = each.submission
        more = f" ({_folder(of.id or of.file)})" if alike[name.casefold()] > 1 else ""
        own = out / "students" / (name + more)
        own.mkdir(parents=True, exist_ok=True)
        save(own / "report.html", page(each))
        save(own / "results.json", json.dumps(as_gradescope(each), indent=1) + "\n")


def _folder(name: str) -> str:
    return re.sub(r"[^\w .()-]", "_", name)[:60].strip(". ") or "_"


def points_table(results: Sequence[Graded]) -> Iterator[Sequence]:
    """A row for each file: points for each exercise, the first message, and what to look at."""
    names = list(dict.fromkeys(mark.name for each in results for mark in each.marks))
    yield [*OURS, *names, "remark", "notes", *THEIRS]
    for each in results:
        of, points = each.submission, {mark.name: mark.points for mark in each.marks}
        whose = of.student, of.id, of.file, each.chapter, "yes" if each.counts else "no"
        own = each.checked, each.possible, *(points.get(name, "") for name in names)
        notes = (f"{mark.name}: {note}" for mark in each.marks for note in mark.notes)
        said = remark(each), "; ".join(filter(None, [each.alike, *notes]))
        yield [*map(harmless, whose), *own, *map(harmless, said), each.by_hand, each.comment]


def by_hand(out: Path, files: Iterable[str]) -> ByHand:
    """What a teacher wrote into the last table: points and a comment, by file.

    Points that differ from what the grader wrote are the teacher's, too. An error where some of it
    would be lost.
    """
    path, names, kept = out / "grades.csv", {harmless(name): name for name in files}, {}
    if not path.exists():
        return {}
    heads, *table = Sheet(path).values()
    if not {*OURS, *THEIRS} <= {*heads}:
        raise ValueError(f"{path} is no table of this grader: choose another --out")
    written = {}
    if (before := out / "grades.json").exists():
        entries = json.loads(before.read_text(encoding="utf-8"))
        written = {harmless(each["file"]): each["checked"] for each in entries}
    for cells in table:
        row = dict(zip(heads, cells, strict=False))
        name, points, given, comment = (row.get(h, "") for h in ("file", "points", *THEIRS))
        for value in filter(None, (points, given)):
            number(value, f"{path}, {name},")
        if not given and points and abs(number(points) - written.get(name, number(points))) > 0.005:
            given = points
        if (given or comment) and name not in names:
            raise ValueError(
                f"{path} has points by hand or a comment for {name}, which was not handed in here: "
                "choose another --out"
            )
        if given or comment:
            kept[names[name]] = given, comment
    return kept


def as_json(each: Graded) -> dict:
    """All that is known of a file."""
    own = "chapter", "counts", "points", "checked", "possible", "problem", "comment", "alike"
    return {
        **{name: getattr(each.submission, name) for name in ("student", "id", "file")},
        **{name: getattr(each, name) for name in own},
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
        "output": "\n".join(filter(None, (each.problem, each.comment))),
        "visibility": PUBLIC,
        "stdout_visibility": "hidden",
    }
    return result | ({"tests": tests} if tests else {})


def remark(each: Graded) -> str:
    """The first thing to know of a file, in one line."""
    if each.problem:
        return each.problem
    first = next((mark for mark in each.marks if mark.state != "passed"), None)
    return f"{first.name}: {first.sentence}" if first else "all passed"


def comment(each: Graded) -> str:
    """What a student is told, as text."""
    lines = (f"{m.name} ({m.points:g} of {m.possible:g}): {m.sentence}" for m in each.marks)
    return "\n".join(filter(None, [each.total, each.comment, each.problem, *lines]))


def page(each: Graded) -> str:
    """The page that a student gets, as HTML that needs nothing beside it."""
    return REPORT.render(each=each, of=each.submission) + "\n"


def save(path: Path, text: str) -> None:
    """Write a text, or leave what was there."""
    with atomic_write(path) as scratch:
        scratch.write_bytes(text.encode(errors="replace"))


def harmless(value: str) -> str:
    """Names of files are the students': a spreadsheet would run one that begins with ``=``."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
