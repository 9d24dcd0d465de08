"""Copies of a process: what they say through a pipe, and how they ended."""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

MOST = 2**26  # bytes that a copy may send back


@contextmanager
def quiet_and_apart(kept: int) -> Iterator[None]:
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


def write(to: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(to, view) :]


def read(source: int, until: float) -> bytes:
    """All that is written until it is closed, or until somebody writes too much."""
    parts: list[bytes] = []
    size = 0
    while size < MOST:
        if not select.select([source], [], [], max(0, until - time.monotonic()))[0]:
            raise TimeoutError
        part = os.read(source, 2**20)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
    return b"?"


def ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
