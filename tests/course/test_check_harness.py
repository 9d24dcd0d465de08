"""The harness makes mutants, and survives what they do."""

import resource
import signal
import time

import pytest
import torch

from course.check.exercise import EXERCISES, Exercise
from tests.course import harness
from tests.course.harness import OutOfTime, limited, mistakes, survivors
from tests.course.mutants import mutants

TOY = '''
import torch
def last_rows(a, b, count):
    """Docstring."""
    product = a @ b.transpose(0, 1)
    total = torch.sum(product[count:], dim=1)
    return total / 2
'''
ENDLESS = "def endless():\n    i = 0\n    while i < 3:\n        i = i + 1\n    return i"


FAULTS = {
    "return total / 2": ["return total * 2", "return total / 3", "return 2 / total", "pass"],
    "product = a @ b.transpose(0, 1)": ["product = a @ b", "product = b.transpose(0, 1) @ a", "product = a @ a.transpose(0, 1)"],
    "total = torch.sum(product[count:], dim=1)": [
        *(f"total = torch.sum(product[{rest})" for rest in ("count:], dim=0", "count:]", ":], dim=1")),
        "total = torch.mean(product[count:], dim=1)", "total = product[count:]",
    ],
}  # fmt: skip


def test_the_mutants_hold_the_usual_faults_all_differ_and_keep_the_docstring():
    table = mutants(TOY)
    usual = {f"{line} -> {fault}" for line, faults in FAULTS.items() for fault in faults}
    assert usual <= table.keys()
    assert len(set(table.values())) == len(table) > 20
    assert all('"""Docstring."""' in source for source in table.values())
    twice = mutants("def f(x):\n    x = x + 1\n    x = x + 1\n    return x")
    assert {"x = x + 1 -> x = x - 1", "x = x + 1 -> x = x - 1 (again)"} <= set(twice)


def test_a_mutant_that_does_not_end_does_not_survive(monkeypatch):
    def endless(attempt):
        attempt.expect(float(attempt()) == 3.0, "Not 3.")

    monkeypatch.setitem(EXERCISES, "endless", Exercise(endless))
    monkeypatch.setattr(harness, "limited", lambda: limited(seconds=0.1))
    alive = survivors("endless", ENDLESS)
    assert "while i < 3: -> while i != 3:" in alive and "i = i + 1 -> pass" not in alive
    assert torch.get_default_dtype() == torch.float32  # as before the check that was cut short


def test_a_mistake_known_by_a_formula_is_made_and_what_the_check_says_is_told(monkeypatch):
    def halved(attempt):
        x = torch.tensor([2.0, 4.0])
        result = attempt(x, shape=dict(entries=2))
        attempt.expect(bool(result[0] >= 1), "Too small.")
        known = {x: "Unchanged.", x / 2: "As it should be.", 0 * x: "Zero.", x[:1]: "Flat."}
        attempt.expect_close(result, {x / 2: "Wrong."} | known)
        attempt.expect_close(result.sum(), {x.sum() / 2: "Wrong.", x.sum(): "Tripled."})

    monkeypatch.setitem(EXERCISES, "halved", Exercise(halved))
    replies = mistakes("halved", lambda x: x / 2)
    assert all(text.startswith("Wrong. ") for text in replies.pop("Wrong."))
    flat = "The result has shape [1], expected [entries 2]."
    said = {"As it should be.": "", "Zero.": "Too small.", "Flat.": flat}
    known = {text: said.get(text, text) for text in ("Unchanged.", *said, "Tripled.")}
    assert replies == {text: {reply} for text, reply in known.items()}


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
