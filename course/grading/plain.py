"""The checks as plain functions, for courses that are graded with nbgrader, otter or pytest.

They run in the process that calls them, so they need the care that the other tool takes.
"""

import functools
from collections.abc import Callable
from contextlib import suppress

from course.check.attempt import Attempt, NotAttempted, NotYet
from course.check.exercise import EXERCISES


def require(exercise: str, function: Callable) -> None:
    """Raise an AssertionError with the check's message unless the function passes."""
    report = EXERCISES[exercise](function)
    if not report.passed:
        raise AssertionError(f"{exercise}: {report.message}")


def share(exercise: str, function: Callable, of: int) -> float:
    """The fraction of a check's expectations that a function meets: 1 where it passes.

    ``of`` is how many the check has: the number that it prints for an answer that passes. What an
    answer meets that does nothing is not counted.
    """
    attempt = Attempt(function)
    try:
        EXERCISES[exercise].examine(attempt)
    except (NotYet, NotAttempted):
        return part(attempt.checks, of, free(exercise)[0])
    return 1.0


def part(met: int, total: int, free: int) -> float:
    """The fraction of expectations that a failed answer met, those aside that are free.

    A check may ask more of one answer than of another, so it is held below all of them.
    """
    return max(0, min(met, total - 1) - free) / max(total - free, 1)


@functools.cache
def free(exercise: str) -> tuple[int, int]:
    """The most that is met by giving back an input, or zeros: checks, and those that count."""
    met = []
    for function in (lambda x, *_: 0 * x, *(lambda *x, at=at: x[at] for at in range(6))):
        attempt = Attempt(function)
        with suppress(Exception):
            EXERCISES[exercise].examine(attempt)
        met.append((attempt.checks, attempt.scored))
    most, scored = zip(*met, strict=True)
    return max(most), max(scored)
