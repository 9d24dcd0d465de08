"""The harness survives what mutants do."""

import resource
import signal
import time

import pytest
import torch

from tests.course.harness import OutOfTime, limited


def test_what_runs_too_long_or_asks_for_too_much_memory_is_stopped_and_limits_are_restored():
    before = resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGPROF)
    started = time.monotonic()
    with pytest.raises(OutOfTime), limited(seconds=0.2):
        while True:
            pass
    assert time.monotonic() - started < 5
    held = torch.empty(2**28)  # a gigabyte, which the process has before
    with pytest.raises(RuntimeError, match=f"allocate {2**35} "), limited(gigabytes=1):
        torch.stack([held[: 2**26] + 1, torch.ones(2**33)])
    assert before == (resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGPROF))
