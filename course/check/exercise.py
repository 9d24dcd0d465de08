"""What an exercise is: a check that examines an attempt and reports, registered by name.

A check is one function, read from top to bottom. It calls the attempt on tensors whose sizes all
differ, and states one expectation after another; each isolates one mechanism and says what is
probably wrong when it is not met. The first that is not met ends the check. New tensors
are float64 throughout, those that the learner's function makes too.

    @exercise(chapter="02_attention")
    def doubled(attempt):
        x = normal_draws(seed=0)(2, 3)
        result = attempt(x, shape=dict(rows=2, columns=3))
        attempt.expect_close(result, 2 * x, "Every entry should be twice that of x.",
                             mistakes={"x comes back unchanged.": x})
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from course.check.attempt import Attempt, NotAttempted, NotYet
from course.check.report import Report

EXERCISES: dict[str, "Exercise"] = {}


@contextmanager
def double_precision() -> Iterator[None]:
    """Make new tensors float64 inside, so that no processor's rounding decides on an answer."""
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        yield
    finally:
        torch.set_default_dtype(before)


class Exercise:
    """A registered check: call it with the learner's function to get a Report."""

    def __init__(self, examine: Callable[[Attempt], None], chapter: str):
        functools.update_wrapper(self, examine)
        self.name, self.chapter, self.examine = examine.__name__, chapter, examine

    def __call__(self, function: Callable) -> Report:
        """Check a function. A mistake in it is reported and never raised."""
        if not callable(function):
            return Report(
                self.name,
                "failed",
                f"check.{self.name} was given something of type {type(function).__name__}. "
                f"Pass the function itself, without calling it: check.{self.name}({self.name}).",
            )
        attempt = Attempt(function)
        try:
            with double_precision():
                self.examine(attempt)
        except NotAttempted:
            return Report(self.name, "open")
        except NotYet as reason:
            return Report(self.name, "failed", str(reason))
        return Report(self.name, "passed", f"{attempt.met} checks")


def exercise(chapter: str) -> Callable[[Callable[[Attempt], None]], Exercise]:
    """Register a check under the name of the function it examines.

    Args:
        chapter: The notebook with the stub, without its ending: "02_attention".

    Raises:
        ValueError: Another exercise has this name.
    """

    def register(examine: Callable[[Attempt], None]) -> Exercise:
        if examine.__name__ in EXERCISES:
            raise ValueError(f"two exercises are called {examine.__name__!r}, expected one")
        return EXERCISES.setdefault(examine.__name__, Exercise(examine, chapter))

    return register
