"""What an exercise is: a check that examines an attempt and reports, registered by name.

A check is one function, read from top to bottom. It calls the attempt on tensors whose sizes all
differ and states expectations, each of which isolates one mechanism and says what is probably
wrong. The first that is not met ends the check. All new tensors are float64, those of the learner's
function too.

    @exercise("rows, columns", seed=0)
    def doubled(attempt, normal):
        x = normal(2, 3)
        outcomes = {2 * x: "Every entry should be twice that of x.", x: "x comes back unchanged."}
        attempt.expect_close(attempt(x), outcomes)  # the right one first

What is expected comes from formulas and loops written in the check, never from minivit: a mistake
in the package must not make a wrong answer right.
"""

import functools
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Literal

import torch

from course.check.attempt import Attempt, NotAttempted, NotYet, normal_draws
from course.mine import keep

WORDS = {"passed": "passed", "failed": "not yet", "open": "not attempted yet"}


@dataclass(frozen=True, repr=False)
class Report:
    """The outcome of a check, which the notebook shows as text or as a small card."""

    name: str
    state: Literal["passed", "failed", "open"]
    detail: str = ""  # what is probably wrong, or how much was checked
    kept: str = ""  # what became of the reader's piece, a sentence

    @property
    def passed(self) -> bool:
        return self.state == "passed"

    @property
    def message(self) -> str:
        """The state in words, then the detail: "not yet: nothing is returned."."""
        if self.passed:
            return f"{WORDS[self.state]} ({self.detail}). {self.kept}".removesuffix(". ")
        return f"{WORDS[self.state]}: {self.detail}" if self.detail else WORDS[self.state]

    def __repr__(self) -> str:
        return textwrap.fill(f"{self.name}: {self.message}", width=100, break_long_words=False)

    def _repr_html_(self) -> str:
        word, rest = WORDS[self.state], escape(self.message.removeprefix(WORDS[self.state]))
        return (
            f'<div class="check check-{self.state}">'
            f"<code>{escape(self.name)}</code> <strong>{word}</strong>{rest}</div>"
        )


class Exercise:
    """A check: call it with the learner's function to get a Report.

    ``axes`` names the axes of the function's result, with commas between; "": one number. With a
    seed the check is given what draws its normal numbers, too.
    """

    def __init__(self, check: Callable[..., None], axes: str = "", seed: int | None = None):
        functools.update_wrapper(self, check)
        self.name = check.__name__
        self.check, self.axes, self.seed = check, axes, seed

    def examine(self, attempt: Attempt) -> None:
        """Run the check in float64, so that rounding does not decide on an answer."""
        attempt.axes = self.axes
        with double_precision():
            self.check(attempt, *([] if self.seed is None else [normal_draws(self.seed)]))

    def __call__(self, function: Callable) -> Report:
        """Check a function. A mistake in it is reported and never raised."""
        if not callable(function):
            detail = (
                f"check.{self.name} was given something of type {type(function).__name__}. "
                f"Pass the function itself, without calling it: check.{self.name}({self.name})."
            )
            return Report(self.name, "failed", detail)
        attempt = Attempt(function)
        try:
            self.examine(attempt)
        except NotAttempted:
            return Report(self.name, "open")
        except NotYet as reason:
            return Report(self.name, "failed", str(reason))
        kept = keep(self.name, function, lambda other: self.examine(Attempt(other)))
        return Report(self.name, "passed", f"{attempt.checks} checks", kept)


EXERCISES: dict[str, Exercise] = {}


def exercise(axes: str = "", seed: int | None = None) -> Callable[[Callable], Exercise]:
    """Register a check under the name of the function it examines."""

    def register(check: Callable[..., None]) -> Exercise:
        return EXERCISES.setdefault(check.__name__, Exercise(check, axes, seed))

    return register


@contextmanager
def double_precision() -> Iterator[None]:
    """Make new tensors float64 inside."""
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        yield
    finally:
        torch.set_default_dtype(before)
