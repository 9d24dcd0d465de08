"""Functions from notebooks and their mutants, run against their check by the tests.

Needs Linux or macOS for the limits on time and memory.
"""

import itertools
import linecache
import resource
import runpy
import signal
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from course import book_vit
from course.check.attempt import Attempt, NotYet, alike
from course.check.exercise import EXERCISES, Report, double_precision
from course.grading.answers import BOOK, chapter, program
from course.grading.isolation import data_size
from course.grading.notebook import Notebook, read
from course.pieces import PIECES
from tests.course.mutants import mutants

_sources = itertools.count()


@cache
def cells_of(path: Path) -> Notebook:
    return read(path)


def solution(name: str) -> str:
    """The book's solution of an exercise, with what it needs but the pieces of other exercises."""
    of = chapter(int(EXERCISES[name].__module__[-2:]))
    paths = BOOK / f"solutions/{of.name}.ipynb", BOOK / f"{of.name}.ipynb"
    for notebook in map(cells_of, filter(Path.exists, paths)):
        stubs = {cell.number for cell in notebook.cells if cell.id == of.cells[name]}
        own = [s for s in notebook.statements if not s.gives & ({*PIECES} - {name})]
        if source := program((s for s in own if name not in s.gives or s.cell not in stubs), name):
            return source
    raise LookupError(name)


@cache
def answers(name: str) -> dict[str, Any]:
    """What the file of an exercise's chapter has; rows of tables by exercise, without its name."""
    chapter = EXERCISES[name].__module__.removeprefix("course.check.")
    file = runpy.run_path(str(Path(__file__).with_name(f"{chapter}.py")))
    tables: dict[str, Any] = {}
    for kind in "ALSO_RIGHT", "WRONG", "EQUIVALENT":
        tables[kind] = defaultdict(list)
        for exercise, *row in file.get(kind, ()):
            tables[kind][exercise].append(row)
    return file | tables


def run(name: str, source: str) -> Report:
    """Define the function from its source and run the check of that name on it."""
    filename = f"<{name} {next(_sources)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {piece: getattr(book_vit, piece) for piece in PIECES}  # what chapters load
    exec(compile(source, filename, "exec"), namespace)
    return EXERCISES[name](namespace[name])


class Mistake(NamedTuple):
    """A mistake that a check knows: what it says of it, and the result that it leads to."""

    message: str
    result: Any
    expectation: int  # where the check looks for it
    call: int | None  # which call returns the result; None: it is computed from what calls return


class Rehearsal(Attempt):
    """A right answer under examination, which meets all mistakes that its check knows.

    Given one of them, it makes that mistake.
    """

    def __init__(self, function: Callable, made: Mistake | None = None):
        super().__init__(function)
        self.made = made
        self.results: list[Tensor] = []
        self.mistakes: list[Mistake] = []
        self.expectations = 0

    def __call__(self, *inputs, **form) -> Tensor:
        right, made = self.function, self.made
        if made and made.call == len(self.results):
            self.function = lambda *inputs: made.result
        self.results.append(super().__call__(*inputs, **form))
        self.function = right
        return self.results[-1]

    def expect_close(self, actual, outcomes, slack=1.0) -> None:
        known = {alike(value, actual): message for value, message in outcomes.items()}
        right, otherwise = next(iter(known.items()))
        off = (1.5 * right + 0.2, right.flip(0) if right.ndim else -right)
        mistakes = [*((value, otherwise) for value in off), *list(known.items())[1:]]
        super().expect_close(self._met(actual, mistakes), known, slack)

    def expect_equal(self, result, outcomes) -> None:
        _, *mistakes = ((value, message) for message, value in outcomes.items())
        super().expect_equal(self._met(result, mistakes), outcomes)

    def _met(self, actual: Any, mistakes: Iterable[tuple[Any, str]]) -> Any:
        """What is found here, or the result of the mistake that is made here."""
        here, self.expectations = self.expectations, self.expectations + 1
        call = next((i for i, result in enumerate(self.results) if result is actual), None)
        self.mistakes += [Mistake(text, wrong, here, call) for wrong, text in mistakes]
        made = self.made
        return made.result if made and (made.expectation, made.call) == (here, None) else actual


def mistakes(name: str, right: Callable) -> dict[str, set[str]]:
    """By message of a check's outcomes, what it says to a right answer that leads to each once.

    A check may look for the same mistake in several places; "" stands where it does not notice. A
    right result is moved and turned over for its message.
    """
    examine = EXERCISES[name].examine
    replies: dict[str, set[str]] = {}
    with double_precision():
        rehearsal = Rehearsal(right)
        examine(rehearsal)
        for mistake in rehearsal.mistakes:
            reply = ""
            try:
                examine(Rehearsal(right, mistake))
            except NotYet as reason:
                reply = str(reason)
            replies.setdefault(mistake.message, set()).add(reply)
    return replies


def survivors(name: str, source: str) -> set[str]:
    """The mutants of a solution that pass its check, by description.

    A mutant that cannot be compiled, or that runs out of time or memory, does not pass.
    """
    alive = set()
    for text, mutant in mutants(source).items():
        with suppress(Exception, OutOfTime), limited():
            if run(name, mutant).passed:
                alive.add(text)
    return alive


class OutOfTime(BaseException):
    """A mutant runs too long. No Exception, so that no check takes it for a learner's mistake."""


@contextmanager
def limited(seconds: float = 5.0, gigabytes: int = 4) -> Iterator[None]:
    """Stop the block with OutOfTime after so much CPU time, and refuse it more memory than this."""

    def stop(signum, frame):
        raise OutOfTime

    previous = signal.signal(signal.SIGPROF, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (data_size() + gigabytes * 2**30, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        signal.signal(signal.SIGPROF, previous)
