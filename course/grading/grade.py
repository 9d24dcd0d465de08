"""Grades notebooks: each in an examiner of its own, several at a time, whatever they hold."""

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from course.check import EXERCISES
from course.grading.answers import Answer, Chapter, answer, chapter, chapter_of, solution
from course.grading.examiner import CannotGrade, examined
from course.grading.notebook import Unreadable, read

POINTS = 10.0  # for an exercise
WORDS = {"failed": "not yet", "open": "not attempted", "missing": "not found"}
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Submission:
    """A notebook and whose it is: a name, and an id where the file or its folder has one."""

    path: Path
    student: str
    id: str = ""


@dataclass(frozen=True)
class Rules:
    chapter: int | None = None  # the only one that counts; None: a notebook's own
    points: Mapping[str, float] | None = None  # None: all exercises of a chapter count alike
    seconds: float = 30.0  # for all calls of an answer together
    megabytes: int = 2000  # for one call of it
    whole: bool = False  # points for what passes alone, no fractions of them
    hidden: tuple[Path, ...] = ()  # folders that answers must not see

    def possible(self, of: Chapter) -> dict[str, float]:
        """The exercises of a chapter that count, with what each is worth."""
        if self.points is None:
            return dict.fromkeys(of.exercises, POINTS)
        return {name: self.points[name] for name in of.exercises if name in self.points}


@dataclass(frozen=True)
class Mark:
    """What one answer gets, and why. ``share`` is the fraction of the expectations that it met."""

    name: str
    state: str  # passed, failed, stopped, open or missing
    message: str
    share: float
    points: float
    possible: float
    notes: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The state as students read it."""
        return WORDS.get(self.state, self.state)

    @property
    def sentence(self) -> str:
        return f"{self.word}: {self.message}" if self.message else self.word


@dataclass(frozen=True)
class Graded:
    """What came of one notebook. ``problem`` says why there are no marks, where there are none."""

    submission: Submission
    chapter: str = ""
    marks: tuple[Mark, ...] = ()
    problem: str = ""
    lacking: tuple[str, ...] = ()  # of the isolation
    seconds: float = 0.0
    possible: float = 0.0

    @property
    def points(self) -> float:
        return round(sum(mark.points for mark in self.marks), 2)


def grade_all(
    submissions: Sequence[Submission], rules: Rules, jobs: int, done: Callable[[Graded], None]
) -> list[Graded]:
    """Grade notebooks, ``jobs`` at a time; ``done`` is called with each as it comes."""

    def grade_one(submission: Submission) -> Graded:
        graded = grade(submission, rules)
        done(graded)
        return graded

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(grade_one, submissions))


def grade(submission: Submission, rules: Rules) -> Graded:
    """Grade one notebook. Whatever is wrong with it is in the result and never raised."""
    began = time.monotonic()
    expected = None if rules.chapter is None else chapter(rules.chapter)
    try:
        notebook = read(submission.path)
        own = chapter_of(notebook)
        if not own:
            raise Unreadable("No exercise of the book is in it.")
        if expected and own != expected:
            raise Unreadable(f"This is {own.name}; {expected.name} was asked for.")
    except Unreadable as problem:
        name, worth = (expected.name, rules.possible(expected)) if expected else ("", {})
        return Graded(submission, name, problem=str(problem), possible=sum(worth.values()))
    with _one_at_a_time:
        totals = reference(own.number)
    worth = rules.possible(own)
    possible = sum(worth.values())
    answers = [answer(notebook, own, name) for name in worth]
    try:
        outcomes, lacking = examined(answers, rules.seconds, rules.megabytes, rules.hidden)
    except CannotGrade as problem:  # the others must not lose theirs
        return Graded(submission, own.name, problem=str(problem), possible=possible)
    marks = []
    for each in answers:
        name = each.exercise
        state, message, met = outcomes.get(name, ("missing", each.missing, 0))
        part = share(state, met, totals[name])
        points = round(worth[name] * (float(part == 1) if rules.whole else part), 2)
        marks.append(Mark(name, state, message, round(part, 4), points, worth[name], each.notes))
    seconds = time.monotonic() - began
    return Graded(submission, own.name, tuple(marks), "", lacking, seconds, possible)


@functools.cache
def reference(number: int) -> dict[str, int]:
    """How many expectations the book's own solution of each exercise of a chapter meets."""
    of = chapter(number)
    answers = [Answer(name, solution(of, name)) for name in of.exercises]
    outcomes, _ = examined(answers, seconds=120, megabytes=4000)
    for name, outcome in outcomes.items():
        if outcome.state != "passed":
            raise CannotGrade(f"the book's own solution of {name} fails: {outcome.message}")
    return {name: outcome.met for name, outcome in outcomes.items()}


def share(state: str, met: int, total: int) -> float:
    """The fraction of expectations met, of those of the book's solution; 1 if passed alone.

    A check may ask more of one answer than of another, so a failed one is held below all of them.
    """
    if state == "passed":
        return 1.0
    return max(0, min(met, total - 1)) / max(total, 1) if state in ("failed", "stopped") else 0.0


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
