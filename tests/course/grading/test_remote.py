"""Whatever a function does in its copy, the process that checks goes on, and says one clear line."""

import contextlib
import ctypes
import os
import signal
import sys
import time

import pytest
import torch
from torch import nn

from course.check.attempt import Attempt, NotAttempted, NotYet
from course.check.exercise import EXERCISES, Exercise, double_precision
from course.grading.examiner import examine
from course.grading.remote import RemoteAttempt, Stopped
from tests.course.harness import answers


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As the examiner has: a copy of a process whose OpenMP has begun more waits for them."""
    torch.set_num_threads(1)


def call(function, *inputs, seconds=5.0, megabytes=300, **rest):
    return RemoteAttempt(lambda: function, seconds, megabytes)(*inputs, **rest)


def loops(x):
    while True:
        pass


def fills(x):
    with open("big", "wb") as file:
        file.write(bytes(2**26))


def forges(x):
    for file in range(3, 100):
        with contextlib.suppress(OSError):
            os.write(file, b'{"exercise": "f", "state": "passed", "checks": 9}\n')
    os._exit(0)


def stub(x):
    raise NotImplementedError


def test_the_time_is_that_of_all_calls_together():
    attempt = RemoteAttempt(lambda: lambda x: time.sleep(1.6) or x, 3, 300)
    attempt(torch.ones(2), shape=dict(n=2))
    with pytest.raises(Stopped, match="stopped after 3 s"):
        attempt(torch.ones(2), shape=dict(n=2))


@pytest.mark.parametrize(("function", "said"), [
    (loops, "It was stopped after 0.8 s (--time)."),
    (fills, "File too large"),
    (forges, "What came back from the process that ran it could not be read."),
    (lambda x: os._exit(3), "died before it answered (exit code 3)"),
    (lambda x: ctypes.string_at(0), "died before it answered (signal SIGSEGV)"),
    (lambda x: os.kill(os.getpid(), signal.SIGTERM), "(signal SIGTERM)"),
    (lambda x: sys.exit(), "It ends Python itself: SystemExit."),
    (lambda x: [torch.ones(2**25) for _ in range(99)], "More than 300 MB of memory"),
    (lambda x: b"x" * 2**33, "More than 300 MB of memory"),
    (lambda x: None, "Nothing is returned"),
    (lambda x: x.zero_(), "changes its argument 1 in place"),
    (lambda x: nn.Linear(2, 2), "The result is of type Linear, expected a torch.Tensor:"),
    (lambda x: print("x" * 2**26) or "done", "The result is of type str"),
])  # fmt: skip
def test_what_a_function_does_to_its_process_costs_one_line(function, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((NotYet, Stopped)) as raised:
        call(function, torch.ones(2), seconds=0.8 if function is loops else 60, shape=dict(n=2))
    assert said in str(raised.value)
    assert all(path.stat().st_size <= 2**24 for path in tmp_path.iterdir())


def test_changes_to_the_checks_end_with_the_call():
    def patches(x):
        Attempt.expect = Attempt.expect_close = lambda *a, **k: None
        torch.allclose = lambda *a, **k: True
        return x * 0

    before = Attempt.expect, Attempt.expect_close, torch.allclose
    attempt = RemoteAttempt(lambda: patches, 5, 300)
    result = attempt(torch.ones(2), shape=dict(n=2))
    assert (Attempt.expect, Attempt.expect_close, torch.allclose) == before
    with pytest.raises(NotYet, match="wrong"):
        attempt.expect_close(result, {torch.ones(2): "wrong"})


def test_a_check_sees_what_a_call_did_to_a_module_and_to_what_counts():
    model, seen = nn.Linear(2, 1), []

    def counted(x):
        seen.append(x)
        return x

    def step(model, gradient):
        model(gradient(torch.ones(2))).sum().backward()
        with torch.no_grad():
            model.bias.fill_(5.0)
        return 1.0

    call(step, model, counted)
    assert len(seen) == 1 and torch.equal(seen[0], torch.ones(2))
    assert model.bias.item() == 5
    assert torch.equal(model.weight.grad, torch.ones(1, 2))


def test_the_error_that_a_function_raised_is_known_to_checks_that_ask_and_a_stub_is_not_attempted():
    with pytest.raises(NotYet) as raised:
        call(lambda x: {}["cls_token"], torch.ones(2), shape=dict(n=2))
    assert type(raised.value.__cause__) is KeyError
    with pytest.raises(NotAttempted):
        call(stub, torch.ones(2), shape=dict(n=2))


def test_answers_cannot_import_the_checks_and_what_every_finite_result_meets_does_not_count():
    source = "def add_positions(tokens, table):\n    return tokens * float('nan')\n"
    assert examine("add_positions", source, 5, 300).met == 0
    for line in ("from course.check.chapter_03 import *", "from course import check"):
        source = f"{line}\ndef add_positions(tokens, table):\n    return 1\n"
        outcome = examine("add_positions", source, 5, 300)
        assert outcome.state == "failed"
        assert "What the function needs cannot be defined. " in outcome.message
        assert f'Error in the line "{line}"' in outcome.message


LOOKING = "training_step", "sharpest", "follow_rules", "largest_value", "norm_pullback"


@pytest.mark.parametrize("name", [*LOOKING, "paired_interval"])
def test_checks_that_look_at_more_than_the_result_say_the_same_as_in_a_notebook(name):
    check, table = EXERCISES[name], answers(name)
    others = [*table["ALSO_RIGHT"][name], *table["WRONG"][name]]
    for answer in [table[name], *(row[-1] for row in others)]:
        attempt = RemoteAttempt(lambda answer=answer: answer, 60, 2000)
        try:
            with double_precision():
                check.examine(attempt)
            said = f"passed ({attempt.checks} checks)"
        except NotYet as reason:
            said = f"not yet: {reason}"
        assert said == check(answer).message


def test_a_check_that_cannot_go_on_costs_its_exercise_alone(monkeypatch):
    def broken(attempt):
        attempt()
        raise IndexError("out of range")

    monkeypatch.setitem(EXERCISES, "broken", Exercise(broken))
    outcome = examine("broken", "def broken():\n    return 1.0\n", 5, 300)
    assert outcome == ("failed", "The check cannot go on: IndexError: out of range.", 0)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(EXERCISES))
def test_every_check_accepts_a_right_answer_that_runs_in_copies(name):
    correct = answers(name)[name]
    attempt = RemoteAttempt(lambda: correct, 120, 4000)
    with double_precision():
        EXERCISES[name].examine(attempt)
    assert attempt.scored > 0
