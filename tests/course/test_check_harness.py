"""The harness finds functions in notebooks, makes mutants, and survives what they do."""

import resource
import signal
import time

import nbformat
import pytest
import torch

from course.check.exercise import EXERCISES, Exercise
from tests.course import harness
from tests.course.harness import OutOfTime, limited, mistakes, notebook_function, survivors
from tests.course.mutants import mutants

TOY = '''
import torch
def last_rows(a, b, count):
    """Docstring."""
    product = a @ b.transpose(0, 1)
    total = torch.sum(product[count:], dim=1)
    return total / 2
'''


def notebook(path, *cells):
    make = nbformat.v4.new_code_cell
    cells = [make(source, metadata={"tags": tags}) for source, tags in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_a_function_comes_from_its_tagged_cell_with_the_imports_it_needs(tmp_path):
    path = notebook(
        tmp_path / "a.ipynb",
        ("%matplotlib inline\nimport math\nimport os\nfrom torch import nn as layers", []),
        ("def f(x):\n    return 1", ["exercise"]),
        ("def f(x):\n    return layers.Linear(math.pi)", ["solution"]),
    )
    assert notebook_function(path, "solution", "f") == (
        "import math\nfrom torch import nn as layers\ndef f(x):\n    return layers.Linear(math.pi)"
    )
    assert notebook_function(path, "exercise", "f") == "def f(x):\n    return 1"


def test_a_function_missing_or_defined_twice_is_an_error(tmp_path):
    twice = [("def f(x):\n    return 1", ["solution"])] * 2
    path = notebook(tmp_path / "a.ipynb", *twice)
    with pytest.raises(ValueError, match=r"has 2 cells tagged 'solution' that define f\(\)"):
        notebook_function(path, "solution", "f")
    with pytest.raises(ValueError, match=r"has 0 cells tagged 'exercise' that define f\(\)"):
        notebook_function(path, "exercise", "f")


@pytest.mark.parametrize(
    "mutant",
    [
        "return total / 2 -> return total * 2",
        "return total / 2 -> return total / 3",
        "return total / 2 -> return 2 / total",
        "return total / 2 -> pass",
        "product = a @ b.transpose(0, 1) -> product = a @ b",
        "product = a @ b.transpose(0, 1) -> product = b.transpose(0, 1) @ a",
        "product = a @ b.transpose(0, 1) -> product = a @ a.transpose(0, 1)",
        "total = torch.sum(product[count:], dim=1) -> total = torch.sum(product[count:], dim=0)",
        "total = torch.sum(product[count:], dim=1) -> total = torch.sum(product[count:])",
        "total = torch.sum(product[count:], dim=1) -> total = torch.mean(product[count:], dim=1)",
        "total = torch.sum(product[count:], dim=1) -> total = torch.sum(product[:], dim=1)",
        "total = torch.sum(product[count:], dim=1) -> total = product[count:]",
    ],
)
def test_the_mutants_hold_the_usual_faults(mutant):
    assert mutant in mutants(TOY)


def test_every_mutant_differs_from_the_others_and_keeps_the_docstring():
    sources = list(mutants(TOY).values())
    assert len(set(sources)) == len(sources) > 20
    assert all('"""Docstring."""' in source for source in sources)


def test_the_same_fault_in_two_equal_lines_makes_two_mutants():
    found = mutants("def f(x):\n    x = x + 1\n    x = x + 1\n    return x")
    assert {"x = x + 1 -> x = x - 1", "x = x + 1 -> x = x - 1 (again)"} <= set(found)


def test_a_mutant_survives_exactly_when_the_check_does_not_notice(monkeypatch):
    def halved(attempt):
        x = torch.tensor([2.0, 4.0])
        result = attempt(x, shape=dict(entries=2))
        attempt.expect(bool(result[0] == 1), "The first entry is wrong.")

    monkeypatch.setitem(EXERCISES, "halved", Exercise(halved))
    found = survivors("halved", "def halved(x):\n    return x / 2")
    assert "return x / 2 -> return x // 2" in found
    assert "return x / 2 -> return x - 2" not in found


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
    assert {"Wrong. At [0] it is 2, expected 1.", "Wrong. It is -3, expected 3."} < replies.pop(
        "Wrong."
    )
    assert replies == {
        "Unchanged.": {"Unchanged."},
        "As it should be.": {""},
        "Zero.": {"Too small."},
        "Flat.": {"The result has shape [1], expected [entries 2]."},
        "Tripled.": {"Tripled."},
    }


def test_what_runs_too_long_or_asks_for_too_much_memory_is_stopped_and_limits_are_restored():
    before = resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGALRM)
    started = time.monotonic()
    with pytest.raises(OutOfTime), limited(seconds=0.2):
        while True:
            pass
    assert time.monotonic() - started < 5
    with pytest.raises(RuntimeError, match="memory"), limited():
        torch.ones(2**33)
    assert before == (resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGALRM))


def test_a_mutant_that_never_ends_does_not_survive(monkeypatch):
    def endless(attempt):
        attempt.expect(float(attempt()) == 3.0, "Not 3.")

    monkeypatch.setitem(EXERCISES, "endless", Exercise(endless))
    monkeypatch.setattr(harness, "limited", lambda: limited(seconds=0.1))
    source = "def endless():\n    i = 0\n    while i < 3:\n        i = i + 1\n    return i"
    assert "while i < 3: -> while i != 3:" in survivors("endless", source)
    assert "i = i + 1 -> pass" not in survivors("endless", source)
    assert torch.get_default_dtype() == torch.float32  # as before the check that was cut short
