"""The pieces a check is made of: reports, attempts, the registry, the memory meter."""

import pytest
import torch

from course.check.attempt import MIXED, normal_draws
from course.check.exercise import Exercise, Report, double_precision
from course.check.memory import MemoryMeter


def doubled(attempt):
    x = normal_draws(seed=0)(2, 3)
    result = attempt(x, shape=dict(rows=2, columns=3))
    attempt.expect_close(result, {2 * x: "Not twice x.", x: "x comes back unchanged."})


def summed(attempt):
    x = normal_draws(seed=1)(3)
    attempt.expect_close(attempt(x), {x.sum(): "Not the sum of x."})


check_doubled = Exercise(doubled)
check_summed = Exercise(summed)


def test_a_report_is_a_card_in_which_nothing_is_taken_for_html():
    assert Report("f", "failed", "a < b")._repr_html_() == (
        '<div class="check check-failed"><code>f</code> <strong>not yet</strong>: a &lt; b</div>'
    )


def test_a_check_counts_the_expectations_that_are_met_up_to_a_mistake_that_it_names():
    assert repr(check_doubled(lambda x: x + x)) == "doubled: passed (2 checks)"
    assert check_doubled(lambda x: x.clone()).message == "not yet: x comes back unchanged."
    off = torch.tensor([[0, 0, 0], [0, 5, 0]])
    expected = 2 * normal_draws(seed=0)(2, 3)[1, 1].item()
    said = f"Not twice x. At [1, 1] it is {expected + 5:.4g}, expected {expected:.4g}."
    assert check_doubled(lambda x: 2 * x + off).message == f"not yet: {said}"
    assert check_doubled(lambda x: 2 * x.T).message == (
        "not yet: The result has shape [3, 2], expected [rows 2, columns 3]. "
        "The axes are in another order."
    )
    assert "another order" not in check_doubled(lambda x: x[:1]).message


def raising(error):
    def function(x):
        raise error

    return function


# What is wrong, a piece of the message for it, and how to make it from a right function.
FAULTS_OF_FORM = {
    "returns nothing": ("Nothing is returned", lambda solve: lambda x: None),
    "returns a list": ("The result is of type list, expected", lambda solve: lambda x: [solve(x)]),
    "shape": ("has shape [1", lambda solve: lambda x: solve(x)[None]),
    "dtype": ("has dtype torch.complex64", lambda solve: lambda x: solve(x).to(torch.complex64)),
    "not a number": ("NaN", lambda solve: lambda x: solve(x) * float("nan")),
    "changes an input": ("changes its argument 1 in place, and so the caller's own tensor", lambda solve: lambda x: (solve(x), x.add_(1))[0]),
    "raises": ('IndexError in the line "raise error": a word', lambda solve: raising(IndexError("a word"))),
    "what torch does not implement": ("not implemented for 'Bool'", lambda solve: raising(NotImplementedError("'addmm' not implemented for 'Bool'"))),
    "takes no arguments": ("TypeError", lambda solve: lambda: None),
    "not a function": ("was given something of type int. Pass the function", lambda solve: 3),
}  # fmt: skip
SOLVED = {"tensor": (check_doubled, lambda x: 2 * x), "number": (check_summed, torch.sum)}


@pytest.mark.parametrize("kind", SOLVED)
@pytest.mark.parametrize("fault", FAULTS_OF_FORM)
def test_a_fault_of_form_is_named_before_the_mechanisms_are_tested(kind, fault):
    check, solve = SOLVED[kind]
    fragment, spoil = FAULTS_OF_FORM[fault]
    assert check(solve).passed
    report = check(spoil(solve))
    assert (report.state, fragment in report.message) == ("failed", True), report


def test_what_a_function_makes_is_float64_during_a_check_and_float32_again_afterwards():
    assert check_doubled(lambda x: x @ (2 * torch.eye(3))).passed
    assert check_summed(lambda x: torch.nn.Linear(3, 1)(x)[0] * 0 + x.sum()).passed
    assert check_doubled(lambda x: torch.nope).state == "failed"
    with pytest.raises(KeyboardInterrupt):
        check_doubled(raising(KeyboardInterrupt()))
    assert torch.tensor(0.3).dtype == torch.float32
    message = check_doubled(lambda x: 2 * x.float()).message
    assert "dtype torch.float32, expected torch.float64" in message
    assert check_doubled(lambda x: x @ (2 * torch.eye(3).float())).message.endswith(MIXED)
    assert check_doubled(lambda x: x * torch.tensor(2.0, requires_grad=True)).passed


def test_another_dtype_and_a_text_are_asked_for_and_what_is_none_is_shown():
    def word(attempt):
        attempt(3, shape=dict(n=3), dtype=torch.bool)
        attempt.expect(attempt.plain(2, kind=str) == "aa", "Not two.")

    def message(text):
        return Exercise(word)(lambda n: torch.ones(n) > 0 if n == 3 else text(n)).message

    assert message(lambda n: "a" * n) == "passed (2 checks)"
    assert message(lambda n: "a") == "not yet: Not two."
    said = "not yet: The result is of type list, expected str: ['a', 'a']."
    assert message(lambda n: ["a"] * n) == said
    assert "Nothing is returned" in message(lambda n: None)
    wrong = Exercise(word)(torch.ones).message
    assert wrong == "not yet: The result has dtype torch.float64, expected torch.bool."


def test_the_meter_counts_the_numbers_of_new_tensors_while_they_live_and_no_views():
    x = torch.ones(10, 10)
    with MemoryMeter(x) as meter:
        y = x + 1
        views = y.T[:5], x[2:].T
    assert (len(views), meter.largest, meter.peak) == (2, 100, 100)
    with MemoryMeter(x) as meter:
        for _ in range(20):
            y = x[:5] * 2  # the one before lives until the name is bound anew
    assert (meter.largest, meter.peak) == (50, 100)
    with MemoryMeter(x) as meter:
        kept = [x + i for i in range(4)]
    assert (len(kept), meter.largest, meter.peak) == (4, 100, 400)
    with double_precision(), MemoryMeter() as meter:
        y = torch.ones(10, 10)
    assert (len(y), meter.largest) == (10, 100)
    with MemoryMeter(x) as meter:  # tensors without storage are inside
        torch.func.hessian(lambda row: row.pow(4).sum())(x[0])
    assert meter.largest == 100
