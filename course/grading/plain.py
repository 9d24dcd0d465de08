"""The checks as plain functions, for courses that are graded with nbgrader, otter or pytest.

They run in the process that calls them, so they need the care that the other tool takes.
"""

from collections.abc import Callable

from course.check.attempt import Attempt, NotAttempted, NotYet
from course.check.exercise import EXERCISES


def require(exercise: str, function: Callable) -> None:
    """Raise an AssertionError with the check's message unless the function passes."""
    report = EXERCISES[exercise](function)
    if not report.passed:
        raise AssertionError(f"{exercise}: {report.message}")


def share(exercise: str, function: Callable, of: int) -> float:
    """The fraction of a check's expectations that a function meets: 1 where it passes.

    ``of`` is how many the check has: the number that it prints for an answer that passes.
    """
    attempt = Attempt(function)
    try:
        EXERCISES[exercise].examine(attempt)
    except (NotYet, NotAttempted):
        return min(attempt.checks, of - 1) / of
    return 1.0
