"""Grades what was handed in: each file in an examiner of its own, several at a time."""

import functools
import hashlib
import pickle
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from course.check import EXERCISES
from course.grading import plain
from course.grading.answers import Answer, Chapter, answer, chapter, chapter_of, solution
from course.grading.examiner import PACKAGES, CannotGrade, examined
from course.grading.filled import number
from course.grading.handed_in import Submission
from course.grading.notebook import LARGEST, Unreadable, read_apart

POINTS = 10.0  # for an exercise
WORDS = {"failed": "not yet", "open": "not attempted", "missing": "not found"}
KEPT_BACK = "What it raised is not shown, as the answer does what none needs to."
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Rules:
    chapter: int | None = None  # the only one that counts; None: a notebook's own
    points: Mapping[str, float] | None = None  # None: all exercises of a chapter count alike
    seconds: float = 30.0  # for all calls of an answer together
    megabytes: int = 2000  # for one call of it
    whole: bool = False  # points for what passes alone, no fractions of them
    hidden: tuple[Path, ...] = field(default=(), repr=False)  # folders, from answers

    def possible(self, of: Chapter) -> dict[str, float]:
        """The exercises of a chapter that count, with what each is worth."""
        if self.points is None:
            return dict.fromkeys(of.exercises, POINTS)
        return {name: self.points[name] for name in of.exercises if name in self.points}


@dataclass(frozen=True)
class Mark:
    """What one answer gets, and why. ``share`` is the fraction of the expectations that it met."""

    name: str
    state: str  # passed, failed, stopped, refused, open or missing
    message: str
    share: float
    points: float
    possible: float
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def word(self) -> str:
        """The state as students read it."""
        return WORDS.get(self.state, self.state)

    @property
    def sentence(self) -> str:
        return f"{self.word}: {self.shown}" if self.message else self.word

    @property
    def shown(self) -> str:
        """The message, unless it could hold what an answer has looked for."""
        unusual = any(note.startswith("looks unusual") for note in self.notes)
        return KEPT_BACK if unusual and "Error" in self.message else self.message


@dataclass(frozen=True)
class Graded:
    """What came of one file. ``problem`` says why there are no marks, where there are none."""

    submission: Submission
    chapter: str = ""
    marks: tuple[Mark, ...] = ()
    problem: str = ""
    lacking: tuple[str, ...] = ()  # of the isolation
    seconds: float = 0.0
    possible: float = 0.0
    at_fault: bool = False  # the grader is, not the file
    counts: bool = True  # no other file of this student does in its place
    by_hand: str = ""  # a teacher's points, where there are any
    comment: str = ""
    alike: str = ""

    @property
    def checked(self) -> float:
        return round(sum(mark.points for mark in self.marks), 2)

    @property
    def points(self) -> float:
        return number(self.by_hand) if self.by_hand else self.checked

    @property
    def total(self) -> str:
        return f"{self.points:g} of {self.possible:g}"


def grade_all(
    submissions: Sequence[Submission], rules: Rules, jobs: int, done: Path
) -> Iterator[Graded]:
    """Grade files, ``jobs`` at a time, but for those in the folder ``done``; each as it comes."""
    done.mkdir(parents=True, exist_ok=True)
    if rules.chapter is not None:
        reference(rules.chapter)

    def grade_one(submission: Submission) -> Graded:
        try:
            kept = done / _key(submission, rules)
            with suppress(Exception):  # it is not there, or not whole
                return replace(pickle.loads(kept.read_bytes()), submission=submission)
            graded = grade(submission, rules)
            kept.write_bytes(pickle.dumps(graded))
            return graded
        except Exception as error:  # nobody has thought of it, and the others must not lose theirs
            said = f"The grader failed: {error if isinstance(error, CannotGrade) else repr(error)}"
            return replace(_ungraded(submission, rules, said), at_fault=True)

    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(grade_one, each) for each in submissions]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _key(submission: Submission, rules: Rules) -> str:
    """What a file is, how it is graded, and by which code."""
    path = submission.path
    readable = not submission.problem and path.stat().st_size <= LARGEST
    data = path.read_bytes() if readable else b""
    how = f"{_code()} {rules} {path.suffix} {submission.problem}".encode(errors="replace")
    return hashlib.sha256(how + data).hexdigest()


@functools.cache
def _code() -> str:
    files = (path for package in PACKAGES for path in sorted(package.rglob("*.[py][ym]*")))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _ungraded(submission: Submission, rules: Rules, problem: str) -> Graded:
    expected = None if rules.chapter is None else chapter(rules.chapter)
    name, worth = (expected.name, rules.possible(expected)) if expected else ("", {})
    return Graded(submission, name, problem=problem, possible=sum(worth.values()))


def grade(submission: Submission, rules: Rules) -> Graded:
    """Grade one file. Whatever is wrong with it is in the result and never raised."""
    began = time.monotonic()
    try:
        if submission.problem:
            raise Unreadable(submission.problem)
        notebook = read_apart(submission.path)
        own = chapter_of(notebook)
        if not own:
            raise Unreadable("No exercise of the book is in it.")
        if rules.chapter not in (None, own.number):
            raise Unreadable(f"This is {own.name}; {chapter(rules.chapter).name} was asked for.")
    except Unreadable as problem:
        return _ungraded(submission, rules, str(problem))
    with _one_at_a_time:
        totals = reference(own.number)
    worth = rules.possible(own)
    answers = [answer(notebook, own, name) for name in worth]
    outcomes, lacking = examined(answers, rules.seconds, rules.megabytes, rules.hidden)
    marks = []
    for each in answers:
        name = each.exercise
        state, message, met = outcomes.get(name, (each.state, each.missing, 0))
        part = share(state, met, *totals[name])
        points = round(worth[name] * (float(part == 1) if rules.whole else part), 2)
        made = (name, state, message, round(part, 4), points, worth[name], each.notes, each.source)
        marks.append(Mark(*made))
    seconds = time.monotonic() - began
    return Graded(submission, own.name, tuple(marks), "", lacking, seconds, sum(worth.values()))


@functools.cache
def reference(number: int) -> dict[str, tuple[int, int]]:
    """The expectations that the book's solution of each exercise meets, and those for nothing."""
    of = chapter(number)
    answers = [Answer(name, solution(of, name)) for name in of.exercises]
    outcomes, _ = examined(answers, seconds=120, megabytes=4000)
    for name, outcome in outcomes.items():
        if outcome.state != "passed":
            raise CannotGrade(f"the book's own solution of {name} fails: {outcome.message}")
    return {name: (outcome.met, plain.free(name)[1]) for name, outcome in outcomes.items()}


def share(state: str, met: int, total: int, free: int = 0) -> float:
    """The fraction of expectations met, of those of the book's solution; 1 if passed alone."""
    if state in ("failed", "stopped"):
        return plain.part(met, total, free)
    return float(state == "passed")


def read_points(path: Path) -> dict[str, float]:
    """Points of exercises from a file of lines such as ``multi_head: 10`` (YAML, or JSON)."""
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is neither YAML nor JSON: {error}") from None
    lines: Mapping = loaded if isinstance(loaded, Mapping) and loaded else {str(loaded): None}
    for name, points in lines.items():
        if name not in EXERCISES or type(points) not in (int, float) or not points > 0:
            raise ValueError(
                f"{path} has {name!r}: {points!r}, expected an exercise of the book and a number "
                "above 0, such as multi_head: 10"
            )
    return {name: float(points) for name, points in lines.items()}
