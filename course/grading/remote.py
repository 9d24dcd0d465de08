"""An attempt whose every call runs in a process of its own, a copy of the one that checks.

The copy (``os.fork``) has everything that the function is given, modules and callables too. It runs
the student's definitions and calls the function; numbers and tensors come back through a pipe.
Whatever the code does to the checks, to torch or to Python, it does to a copy that ends with the
call, and the process that checks outlives it.
"""

import builtins
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from course.check.attempt import Attempt, NotAttempted, NotYet
from course.grading import isolation
from course.grading.codec import Within, decode, encode, state, take_over

MOST = 2**26  # bytes that a copy may send back
NO_MEMORY = "can't allocate memory"  # as torch says it


class Stopped(Exception):
    """The function did not come back: it ran too long, or its process died."""


class Refused(Stopped):
    """The function calls what solves the exercise for it."""


class RemoteAttempt(Attempt):
    """As Attempt, for the function that ``define`` returns, which is called in the copies alone.

    All calls of it together may take the seconds, and each may allocate the megabytes.
    """

    def __init__(self, define: Callable[[], Callable], seconds: float, megabytes: int):
        super().__init__(define)
        self.left, self.seconds, self.megabytes = seconds, seconds, megabytes

    def _call(self, inputs: tuple, within: Within) -> object:
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
            case ("refused", str(message)):
                raise Refused(message)
            case ("open",):
                raise NotAttempted
        raise Stopped("What came back from the process that ran it could not be read.")

    def _ask(self, inputs: tuple, within: Within) -> object:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            self._answer(writing, inputs, within)
        os.close(writing)
        try:
            data = _read(reading, time.monotonic() + self.left)
        except TimeoutError:
            raise Stopped(f"It was stopped after {self.seconds:g} s (--time).") from None
        finally:
            os.close(reading)
            os.kill(child, signal.SIGKILL)  # it has answered, or never will
            status = os.waitpid(child, 0)[1]
            isolation.end_what_is_left()
        if not data:
            code = os.waitstatus_to_exitcode(status)
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            raise Stopped(f"The process that ran it died before it answered ({how}).")
        with suppress(ValueError):
            return decode(data)
        return None

    def _answer(self, writing: int, inputs: tuple, within: Within) -> None:
        """In the copy: answer, and end."""
        with _quiet_and_apart(writing):
            isolation.limit(self.left, self.megabytes)
            answer: tuple
            try:
                self.function = self.function()
                result = super()._call(inputs, within)
                answer = ("returned", result, state(inputs, within))
            except NotAttempted:
                answer = ("open",)
            except (NotYet, MemoryError) as reason:
                cause = reason.__cause__
                about = (type(cause).__name__, str(cause)) if cause else None
                message = str(reason)
                if MemoryError in (type(reason), type(cause)) or NO_MEMORY in str(cause):
                    message = f"More than {self.megabytes} MB of memory were asked for (--memory)."
                refused = isinstance(cause, Refused)
                answer = ("refused", str(cause)) if refused else ("not yet", message, about)
            except BaseException as error:
                answer = ("not yet", f"It ends Python itself: {type(error).__name__}.", None)
            view = memoryview(encode(answer))
            while view:
                view = view[os.write(writing, view) :]


@contextmanager
def _quiet_and_apart(kept: int) -> Iterator[None]:
    """In a copy: with no open file but one, in a group of its own, and never beyond this block."""
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.closerange(3, kept)
        os.closerange(kept + 1, 4096)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        yield
    finally:
        os._exit(0)


def _read(source: int, until: float) -> bytes:
    """All that is written until it is closed, or until somebody writes too much."""
    data = bytearray()
    while len(data) < MOST:
        if not select.select([source], [], [], max(0, until - time.monotonic()))[0]:
            raise TimeoutError
        part = os.read(source, 2**20)
        if not part:
            return bytes(data)
        data += part
    return b"?"


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
