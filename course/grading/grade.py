"""Grades notebooks: each in an examiner of its own, several at a time, whatever they hold."""

import functools
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from course.grading.answers import Answer, answer, solution
from course.grading.chapters import Chapter, chapter, chapter_of
from course.grading.notebook import Unreadable, read
from course.grading.points import DEFAULT, Mark, share
from course.grading.processes import CannotGrade, examined
from course.grading.submissions import Submission

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Rules:
    """How to grade. Without ``points`` all exercises of a chapter count alike.

    Args:
        chapter: The number of the only one that counts; without it a notebook's own.
        seconds: For all calls of an answer together.
        megabytes: For one call of it.
        whole: Points for what passes alone, no fractions of them.
        hidden: Folders that answers must not see.
    """

    chapter: int | None = None
    points: Mapping[str, float] | None = None
    seconds: float = 30.0
    megabytes: int = 2000
    whole: bool = False
    hidden: tuple[Path, ...] = ()

    def asked(self, of: Chapter) -> dict[str, float]:
        """The exercises of a chapter that count, with what each is worth."""
        if self.points is None:
            return dict.fromkeys(of.exercises, DEFAULT)
        return {name: self.points[name] for name in of.exercises if name in self.points}


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
    found: list[Submission], rules: Rules, jobs: int = 1, done: Callable[[Graded], None] = print
) -> list[Graded]:
    """Grade notebooks, ``jobs`` at a time; ``done`` is called with each as it comes."""

    def one(submission: Submission) -> Graded:
        graded = grade(submission, rules)
        done(graded)
        return graded

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, found))


def grade(submission: Submission, rules: Rules) -> Graded:
    """Grade one notebook. Whatever is wrong with it is in the result and never raised.

    Raises:
        CannotGrade: The book's own solutions do not pass here.
    """
    began = time.monotonic()
    expected = chapter(rules.chapter) if rules.chapter else None
    try:
        notebook = read(submission.path)
        found = chapter_of(notebook)
        if not found:
            raise Unreadable("No exercise of the book is in it.")
        if expected and found != expected:
            raise Unreadable(f"This is {found.name}; {expected.name} was asked for.")
    except Unreadable as problem:
        possible = sum(rules.asked(expected).values()) if expected else 0.0
        name = expected.name if expected else ""
        return Graded(submission, name, problem=str(problem), possible=possible)
    asked, totals = rules.asked(found), reference(found.number)
    possible = sum(asked.values())
    answers = [answer(notebook, found, name) for name in asked]
    try:
        outcomes, lacking = examined(answers, rules.seconds, rules.megabytes, rules.hidden)
    except CannotGrade as problem:  # the others must not lose theirs
        return Graded(submission, found.name, problem=str(problem), possible=possible)
    marks = tuple(
        _mark(each, outcomes.get(each.exercise), asked[each.exercise], totals, rules)
        for each in answers
    )
    took = time.monotonic() - began
    return Graded(submission, found.name, marks, "", lacking, took, possible)


def _mark(
    of: Answer, outcome: dict | None, worth: float, totals: Mapping[str, int], rules: Rules
) -> Mark:
    if outcome is None:
        return Mark(of.exercise, "missing", of.missing, 0.0, 0.0, worth, of.notes)
    part = share(outcome["state"], outcome["right"], totals[of.exercise])
    points = worth * (float(part == 1) if rules.whole else part)
    state, message = outcome["state"], outcome["message"]
    return Mark(of.exercise, state, message, part, round(points, 2), worth, of.notes)


def reference(number: int) -> dict[str, int]:
    """How many expectations the book's own solution of each exercise of a chapter meets.

    Raises:
        CannotGrade: One of them does not pass.
    """
    with _one_at_a_time:
        return _reference(number)


@functools.cache
def _reference(number: int) -> dict[str, int]:
    of = chapter(number)
    answers = [Answer(name, solution(of, name)) for name in of.exercises]
    outcomes, _ = examined(answers, seconds=120, megabytes=4000)
    for name, outcome in outcomes.items():
        if outcome["state"] != "passed":
            raise CannotGrade(f"the book's own solution of {name} fails: {outcome['message']}")
    return {name: outcome["right"] for name, outcome in outcomes.items()}
