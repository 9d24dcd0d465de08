"""An attempt whose every call runs in a process of its own, a copy of the one that checks.

The copy (``os.fork``) has everything that the function is given, modules and callables too. It runs
the student's definitions and calls the function; numbers and tensors come back through a pipe.
Whatever the code does to the checks, to torch or to Python, it does to a copy that ends with the
call. The process that checks never runs a line of it, so it also outlives what the copy does not.
"""

import builtins
import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from torch import Tensor

from course.check.attempt import Attempt, NotAttempted, NotYet
from course.grading import isolation
from course.grading.codec import decode, encode
from course.grading.copies import ending, quiet_and_apart, read, write
from course.grading.effects import state, take_over


class Stopped(Exception):
    """The function did not come back: it ran too long, or its process died."""


class RemoteAttempt(Attempt):
    """As Attempt, for the function that ``define`` returns, which is called in the copies alone.

    Args:
        define: Runs the student's definitions and returns their function.
        seconds: What all calls of it may take together.
        megabytes: What a call may allocate.
    """

    def __init__(self, define: Callable[[], Callable], seconds: float, megabytes: int):
        super().__init__(define)
        self.left, self.seconds, self.megabytes = seconds, seconds, megabytes
        self.calls = 0

    @property
    def right(self) -> int:
        """Expectations met, without those that every finite result meets."""
        return self.met - self.calls

    def __call__(self, *inputs, **rest) -> Tensor:
        result = super().__call__(*inputs, **rest)
        self.calls += 1
        return result

    def _call(self, inputs: tuple, within: AbstractContextManager | None) -> object:
        began = time.monotonic()
        try:
            answer = self._ask(inputs, within)
        finally:
            self.left -= time.monotonic() - began
        match answer:
            case ("returned", result, list(after)) if take_over(inputs, within, after):
                return result
            case ("not yet", str(message), cause):
                raise NotYet(message) from _exception(cause)
            case ("open",):
                raise NotAttempted
        raise Stopped("What came back from the process that ran it could not be read.")

    def _ask(self, inputs: tuple, within: AbstractContextManager | None) -> object:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            self._answer(writing, inputs, within)
        os.close(writing)
        try:
            data = read(reading, time.monotonic() + self.left)
        except TimeoutError:
            raise Stopped(f"It was stopped after {self.seconds:g} s (--time).") from None
        finally:
            os.close(reading)
            os.kill(child, signal.SIGKILL)  # it has answered, or never will
            status = os.waitpid(child, 0)[1]
            isolation.end_what_is_left()
        if not data:
            raise Stopped(f"The process that ran it died before it answered ({ending(status)}).")
        try:
            return decode(data)
        except ValueError:
            return None

    def _answer(self, writing: int, inputs: tuple, within: AbstractContextManager | None) -> None:
        """In the copy: answer, and end."""
        with quiet_and_apart(writing):
            isolation.limit(self.left, self.megabytes)
            try:
                define, self.function = self.function, _not_defined
                self.function = define()
                result = super()._call(inputs, within)
                answer: tuple = ("returned", result, state(inputs, within))
            except NotAttempted:
                answer = ("open",)
            except NotYet as reason:
                answer = ("not yet", self._plainly(reason), _described(reason.__cause__))
            except MemoryError:
                answer = ("not yet", self._too_much(), None)
            except BaseException as error:
                answer = ("not yet", f"It ends Python itself: {type(error).__name__}.", None)
            write(writing, encode(answer))

    def _plainly(self, reason: NotYet) -> str:
        said = str(reason.__cause__).lower()
        memory = isinstance(reason.__cause__, MemoryError) or "can't allocate memory" in said
        return self._too_much() if memory else str(reason)

    def _too_much(self) -> str:
        return f"More than {self.megabytes} MB of memory were asked for (--memory)."


def _described(error: BaseException | None) -> tuple[str, str] | None:
    return (type(error).__name__, str(error)) if error else None


def _exception(described: object) -> Exception | None:
    """One of the same name and text, for checks that ask what was raised."""
    match described:
        case (str(name), str(text)):
            known = getattr(builtins, name, None)
            if isinstance(known, type) and issubclass(known, Exception):
                with suppress(TypeError):  # UnicodeDecodeError takes five arguments
                    return known(text)
            return type(name, (Exception,), {})(text)
    return None


def _not_defined(*inputs: object) -> object:
    raise NotYet("The definitions did not run to their end.")
