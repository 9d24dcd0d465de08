"""Every check accepts right answers and tells learners what is wrong with others.

For the exercises of a chapter, ``chapter_NN.py`` beside this file holds under each exercise's name
an answer written differently from the book's solution, and three tables, a row of which begins
with the exercise's name:

- ALSO_RIGHT: another right answer;
- WRONG: a piece of the message that a plausible wrong answer must get, and the answer. A formula
  among a check's outcomes is a wrong answer already;
- EQUIVALENT: why mutants of the solution are right too, and each by as much of its line as names it
  alone, "old -> new", or several, "old -> new | new".
"""

import functools
import re
from types import SimpleNamespace

import pytest
import torch
from torch.utils._pytree import tree_leaves

from course import check
from course.check import attempt
from course.check.exercise import EXERCISES
from course.grading.answers import BOOK, answer, chapter
from tests.course.harness import answers, cells_of, mistakes, run, solution, survivors
from tests.course.mutants import makes


@functools.cache
def load(name):
    """An exercise's solution and stub from the book, and its answers from this directory."""
    own, of = answers(name), chapter(int(EXERCISES[name].__module__[-2:]))
    notebook = cells_of(BOOK / f"{of.name}.ipynb")
    return SimpleNamespace(
        name=name, check=EXERCISES[name], correct=own[name], wrong=own["WRONG"][name],
        stub=answer(notebook, of, name).source, solution=solution(name),
        others=[other for (other,) in own["ALSO_RIGHT"][name]],
        equivalent=[change for _, *changes in own["EQUIVALENT"][name] for change in changes],
    )  # fmt: skip


@pytest.fixture(params=sorted(EXERCISES))
def exercise(request):
    return load(request.param)


def test_each_chapter_calls_its_checks_and_no_others():
    called = {}
    for path in BOOK.glob("*.ipynb"):
        for name in re.findall(r"\bcheck\.(\w+)\(", path.read_text(encoding="utf-8")):
            called[name] = f"course.check.chapter_{path.name[:2]}"
    assert called == {name: getattr(check, name).__module__ for name in EXERCISES}


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


def test_other_right_answers_pass(exercise):
    reports = [exercise.check(other) for other in exercise.others]
    assert all(report.passed for report in reports), reports


def test_the_stub_is_not_attempted_yet_and_an_answer_without_a_result_is_named(exercise):
    report = run(exercise.name, exercise.stub)
    assert (report.state, report.message) == ("open", "not attempted yet")
    report = exercise.check(lambda *inputs: None)
    assert (report.state, "Nothing is returned" in report.message) == ("failed", True)


def test_each_outcome_of_a_check_leads_to_its_message_or_a_wrong_answer_by_hand_does(exercise):
    replies = mistakes(exercise.name, exercise.correct)
    fragments = {fragment for fragment, _ in exercise.wrong}
    for message, texts in replies.items():
        by_hand = any(fragment in message for fragment in fragments)
        assert by_hand or any(text.startswith(message) for text in texts), message
    assert len(replies) + len(fragments) >= 3


def test_each_wrong_answer_gets_its_own_message_and_no_other(exercise):
    fragments = {fragment for fragment, _ in exercise.wrong}
    for fragment, wrong in exercise.wrong:
        report = exercise.check(wrong)
        assert report.state == "failed"
        assert {text for text in fragments if text in report.message} == {fragment}, report


def test_only_equivalent_mutants_of_the_solution_pass(exercise):
    alive = survivors(exercise.name, exercise.solution)
    pairs = (change.split(" -> ", 1) for change in exercise.equivalent)
    changes = [f"{old} -> {new}" for old, several in pairs for new in several.split(" | ")]
    expected = [[m for m in alive if makes(m, change)] for change in changes]
    assert sorted(sum(expected, [])) == sorted(alive)
    assert all(len(named) == 1 for named in expected), expected
