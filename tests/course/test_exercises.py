"""Every exercise check accepts right answers, and says of wrong ones what is wrong with them."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.utils._pytree import tree_leaves

from course import check
from course.check import attempt
from course.check.exercise import EXERCISES
from course.check.harness import notebook_function, run, survivors

BOOK = Path(__file__).parents[2] / "book"


def load(name):
    """An exercise's solution and stub from the book, and its answers from this directory."""
    chapter = EXERCISES[name].chapter
    answers = runpy.run_path(Path(__file__).parent / f"answers_{chapter[:2]}.py")
    equivalent = runpy.run_path(Path(__file__).parent / f"survivors_{chapter[:2]}.py")["EQUIVALENT"]
    solution = notebook_function(BOOK / "solutions" / f"{chapter}.ipynb", "solution", name)
    return SimpleNamespace(
        name=name,
        check=EXERCISES[name],
        stub=notebook_function(BOOK / f"{chapter}.ipynb", "exercise", name),
        solution=solution,
        solve=solved(name, solution),
        correct=answers["CORRECT"][name],
        wrong=answers["WRONG"][name],
        equivalent=equivalent[name],
    )


def solved(name, source):
    namespace = {}
    exec(source, namespace)
    return namespace[name]


@pytest.fixture(params=sorted(EXERCISES))
def exercise(request):
    return load(request.param)


def test_every_registered_exercise_can_be_reached_from_the_notebook():
    assert {name: getattr(check, name, None) for name in EXERCISES} == EXERCISES
    assert sorted(check.__all__) == sorted(EXERCISES)


def test_right_answers_pass_in_float64_with_a_tenth_of_the_tolerance(exercise, monkeypatch):
    monkeypatch.setattr(attempt, "RTOL", attempt.RTOL / 10)
    monkeypatch.setattr(attempt, "ATOL", attempt.ATOL / 10)
    report = run(exercise.name, exercise.solution)
    assert report.passed, report

    def drawing(*inputs):
        for x in (*tree_leaves(inputs), torch.rand(3)):
            tensors = x.parameters() if isinstance(x, torch.nn.Module) else [x]
            met.update(t.dtype for t in tensors if torch.is_tensor(t) and t.is_floating_point())
        return exercise.correct(*inputs)

    met, before = set(), torch.get_rng_state()
    report = exercise.check(drawing)
    assert report.passed, report
    assert met == {torch.float64}
    assert torch.equal(torch.get_rng_state(), before)


def test_the_stub_is_not_attempted_yet_and_nothing_is_raised(exercise):
    report = run(exercise.name, exercise.stub)
    assert (report.state, report.message) == ("open", "not attempted yet")


def test_each_wrong_answer_gets_its_own_message_and_no_other(exercise):
    fragments = {fragment for fragment, _ in exercise.wrong}
    assert len(fragments) >= 3
    for fragment, answer in exercise.wrong:
        report = exercise.check(answer)
        assert report.state == "failed"
        assert {text for text in fragments if text in report.message} == {fragment}, report


def test_only_equivalent_mutants_of_the_solution_pass(exercise):
    assert survivors(exercise.name, exercise.solution) == set(exercise.equivalent)


def changing_an_input(solve):
    def function(*inputs):
        result = solve(*inputs)
        inputs[0].add_(1)
        return result

    return function


def raising(solve):
    def function(*inputs):
        raise IndexError("a word")

    return function


# What is wrong, a piece of the message for it, and how to make it from a right function.
FAULTS_OF_FORM = {
    "returns nothing": ("Nothing is returned", lambda solve: lambda *inputs: None),
    "returns a list": ("of type list", lambda solve: lambda *inputs: [solve(*inputs)]),
    "shape": ("has shape [1", lambda solve: lambda *inputs: solve(*inputs)[None]),
    "dtype": ("has dtype torch.complex64", lambda solve: lambda *i: solve(*i).to(torch.complex64)),
    "not a number": ("NaN", lambda solve: lambda *inputs: solve(*inputs) * float("nan")),
    "changes an input": ("changes its argument 1 in place", changing_an_input),
    "raises": ('IndexError in the line "raise IndexError("a word")": a word', raising),
    "takes no arguments": ("TypeError", lambda solve: lambda: None),
    "not a function": ("was given something of type int. Pass the function", lambda solve: 3),
}


@pytest.mark.parametrize("fault", FAULTS_OF_FORM)
def test_a_fault_of_form_is_named_before_the_mechanisms_are_tested(exercise, fault):
    fragment, spoil = FAULTS_OF_FORM[fault]
    report = exercise.check(spoil(exercise.solve))
    assert report.state == "failed"
    assert fragment in report.message
