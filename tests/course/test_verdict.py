import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import ttest_ind

from course.claims import Estimate, Readings, load, on_images, readings, unpaired, verdict
from course.claims.estimate import interval
from course.claims.ledger import MIME
from course.claims.readings import at_equal_loss, stored
from course.claims.rows import Claim
from course.claims.verdict import Verdict, decided
from vitlab.claims.rules import Rule, word_of


def claim(rule):
    cats = ("R01", "Cats < dogs.", "02_attention", "Weight of cats.", "measured", "exact")
    return Claim(*cats, rule=Rule.parse(rule))


HALF = claim({"< 0.5": "holds", "otherwise": "refuted: dogs"})


def test_seeds_give_a_mean_and_students_interval_and_one_number_none():
    one = decided(HALF, 0.25)
    assert (one.figure, one.interval, one.verdict) == ("0.25", "", "holds")
    # mean 0.2, standard deviation 0.1, t(0.975, 2 degrees) = 4.3027: half width 0.2484
    seeds = decided(HALF, [0.1, 0.2, 0.3])
    assert (seeds.figure, seeds.verdict) == ("0.2", "holds")
    assert seeds.interval == "-0.048 to 0.45 (95 %, 3 seeds)"
    with_unit = decided(replace(HALF, unit="dB"), [0.1, 0.2, 0.3])
    assert (with_unit.figure, with_unit.interval) == ("0.2 dB", "-0.048 to 0.45 dB (95 %, 3 seeds)")
    twice = decided(replace(HALF, looks=2), [0.1, 0.2, 0.3])  # t(0.9875) = 6.2053: 0.3583
    assert twice.interval == "-0.16 to 0.56 (95 % over 2 looks, 3 seeds)"
    single = decided(replace(HALF, looks=2), Estimate([0.2], 0.1))  # to which no seed was added
    assert single.verdict == "holds" and "as other images move the value" in single.margin
    assert single.interval == "0.1 to 0.3 (95 %, other images)"


GRADED = {"< 0.3": "holds", "< 0.5": "qualified, in part: cats", "< 0.7": "weaker than claimed"}
GRADED |= {"otherwise": "the opposite was seen here: dogs"}
BOTH_ENDS_NO = {"< 0.3": "refuted", "< 0.5": "holds", "otherwise": "refuted: dogs"}
IN_ITS_WORDS = {"< 0.5": "holds", "otherwise": "refuted", "uncertain": "some cats are"}


@pytest.mark.parametrize(("rule", "seeds", "verdict"), [
    (GRADED, [0.2, 0.25, 0.3], "qualified, in part: cats"),
    (GRADED, [0.2, 0.3, 0.4], "weaker than claimed"),
    (GRADED, [0.6, 0.7, 0.8], "too uncertain to tell: the interval reaches across"),
    (BOTH_ENDS_NO, [0.1, 0.1, 0.9], "too uncertain to tell: the interval reaches across"),
    (IN_ITS_WORDS, [0.3, 0.4, 0.5], "too uncertain to tell: some cats are"),
])  # fmt: skip
def test_an_interval_gets_the_weakest_word_on_it_and_none_across_yes_and_no(rule, seeds, verdict):
    assert decided(claim(rule), seeds).verdict.startswith(verdict)


LITTLE, MUCH, VARIED = [0.1, 0.11, 0.12], [0.8, 0.81, 0.82], [0.1, 0.5, 0.9]


@pytest.mark.parametrize(("by_steps", "others", "verdict"), [
    ({10: MUCH, 30: LITTLE, 100: LITTLE}, {"the next rate": LITTLE}, "holds"),  # not the first
    ({30: MUCH, 100: LITTLE}, {}, "'holds' after the most steps, but 'refuted' after 30 steps."),
    ({30: LITTLE, 100: LITTLE}, {"the next rate": MUCH}, "but 'refuted' at the next rate."),
    ({100: LITTLE}, {"equal training loss": VARIED}, "but 'too uncertain to tell' at equal training"),
    ({30: MUCH, 100: LITTLE}, {"the next rate": MUCH}, "but 'refuted' after 30 steps and at the next rate."),
    ({30: LITTLE, 100: VARIED}, {}, "too uncertain to tell: the interval"),
])  # fmt: skip
def test_a_word_that_changes_with_the_end_of_training_depends_on_it(by_steps, others, verdict):
    found = decided(HALF, Readings(by_steps, others))
    assert verdict in found.verdict
    assert found.verdict.startswith("depends on training") == ("but" in verdict)
    assert found.readings.count(": ") == len(by_steps) + len(others)
    assert "100 steps: " in found.readings


def test_equal_training_loss_is_the_first_epoch_at_a_loss_that_all_reach():
    fast = {"curve": [[[1, 0.9, 0.3], [2, 0.4, 0.6], [3, 0.1, 0.9]]]}
    one, other = at_equal_loss([fast, {"curve": [[[1, 0.9, 0.2], [2, 0.6, 0.4], [3, 0.5, 0.5]]]}])
    assert (*one, *other) == (0.6, 0.5)


def test_rows_of_a_study_are_read_wherever_training_ends():
    def row(steps, right, *more):
        figures = {"steps": steps, "accuracy": [right], "curve": [[[steps, 0.1, right]]]}
        return figures | dict(more)

    rows = {"cat": row(1, 0.1), "cat, 3 x": row(3, 0.3, ("next", row(3, 0.2))), "dog": row(1, 0.9)}
    rows["cat, 10 x"] = row(10, 0.4)
    found = readings(rows, ["cat"], list)
    assert found.by_steps == {1: [0.1], 3: [0.3], 10: [0.4]} and found.value == [0.4]
    assert found.others == {"the next rate": [0.2], "equal training loss": [0.4]}


def test_of_parts_that_must_all_hold_the_worst_decides():
    assert decided(HALF, (LITTLE, MUCH, [0.2, 0.21, 0.22])).figure == "0.81"
    assert decided(HALF, (LITTLE, [0.2, 0.21, 0.22])).figure == "0.21"


IN_PART = {"< 0.5": "holds", "otherwise": "refuted", "one part": "qualified, in part: cats"}


@pytest.mark.parametrize(("parts", "word"), [
    ((LITTLE, MUCH), "qualified, in part"), ((LITTLE, VARIED), "qualified, in part"),
    ((LITTLE, LITTLE), "holds"), ((MUCH, MUCH), "refuted"), ((VARIED, MUCH), "refuted"),
])  # fmt: skip
def test_one_part_that_is_certain_makes_a_claim_true_in_part_if_its_rule_says_so(parts, word):
    assert word_of(decided(claim(IN_PART), parts).verdict) == word


@pytest.mark.parametrize("value", [
    [0.1, 0.2, 0.3], 0.2, unpaired([0.1, 0.2, 0.3], [0.3, 0.2, 0.2]), (LITTLE, unpaired(MUCH, LITTLE)),
    Readings({30: MUCH, 100: LITTLE}, {"the next rate": (LITTLE, MUCH)}),
])  # fmt: skip
def test_a_verdict_is_written_again_from_what_its_output_stores(value):
    first = Verdict(claim(IN_PART), value)._repr_mimebundle_()
    kept = json.loads(json.dumps(first[1][MIME]))
    assert Verdict(claim(IN_PART), stored(kept))._repr_mimebundle_() == first


def test_two_architectures_are_no_pairs_and_have_welch_s_interval():
    one, other = [0.4, 0.5, 0.45], [0.3, 0.35, 0.2, 0.25]
    found = unpaired(one, other)
    expected = ttest_ind(one, other, equal_var=False).confidence_interval()
    mean = sum(found.values) / 3
    assert (mean - found.half, mean + found.half) == pytest.approx((expected.low, expected.high))
    assert unpaired([1, 1, 1], [0, 0, 0]) == Estimate([1, 1, 1], 0)
    assert unpaired([3], [1]) == Estimate([2], 0)


def test_shared_images_widen_an_interval_by_the_binomial_error_of_a_difference():
    found = on_images([0.1, 0.1, 0.1], [0.5, 0.9], 100)
    assert found.half == pytest.approx(1.96 * (0.25 / 100 + 0.09 / 100) ** 0.5)
    for values in ([0.1, 0.2, 0.3], Estimate([0.1, 0.2, 0.3], 0.2484)):
        assert on_images(values, [1, 1], 100).half == pytest.approx(0.2484, abs=1e-4)
    given = decided(HALF, found)
    assert given.interval == "-0.014 to 0.21 (95 %, 3 seeds)" and given.half == found.half


def test_the_interval_of_shares_stays_in_their_range():
    for shares in ([1, 1, 1, 1, 0.5], [0, 0.1, 0], [0.4, 0.5, 0.6]):
        centre, half = interval(np.array(shares), None, True)
        assert 0 <= centre - half < np.mean(shares) < centre + half <= 1
    assert interval(np.ones(3), None, True) == (1, 0)
    share = replace(HALF, share=True)
    assert decided(share, [0, 0.1, 0]).interval == "0.0016 to 0.43 (95 %, 3 seeds)"


def test_what_processors_move_a_figure_by_counts_as_part_of_its_interval(monkeypatch):
    moved = {"R01": 0.1}
    monkeypatch.setattr(import_module("course.claims.verdict"), "spread", moved.get)
    assert word_of(decided(HALF, 0.45).verdict) == "too uncertain to tell"
    assert "is no farther than processors move" in decided(HALF, 0.45).margin
    assert "is 1 to 5 times as far as processors move" in decided(HALF, 0.35).margin
    assert "is 5 to 25 times as far as processors move" in decided(HALF, -0.1).margin
    assert decided(HALF, 0.0).verdict == "holds"
    moved["R01"] = 0.0
    assert decided(HALF, 0.45).margin == "processors do not move the value"
    margin = decided(HALF, [0.1, 0.2, 0.3]).margin  # half width 0.2484, as above, of 0.3
    assert "1 to 5 times as far as seeds and processors move" in margin


def test_text_page_and_ledger_say_the_same_and_every_digit_stands_beside_them():
    bundle, metadata = Verdict(HALF, 0.75)._repr_mimebundle_()
    fields = {"id": "R01", "figure": "0.75", "verdict": "refuted: dogs"}
    assert bundle[MIME] == fields | {"interval": "", "margin": ""}
    assert metadata == {MIME: {"id": "R01", "seeds": [0.75]}}
    for part in ("0.75", "Weight of cats.", "refuted", "dogs", "holds if"):
        assert part in bundle["text/plain"] and part in bundle["text/html"].replace("&lt;", "<")
    assert "Cats &lt; dogs." in bundle["text/html"]
    assert '<details class="verdict verdict-refuted" id="verdict-R01">' in bundle["text/html"]


def test_rounding_errors_are_printed_without_their_digits_and_no_figure_as_minus_zero():
    equal = claim({"<= 1e-10": "holds", "otherwise": "refuted"})
    assert decided(equal, 3.1e-16).figure == "below 1e-10"
    assert decided(equal, 0.31).figure == "0.31"
    assert decided(replace(HALF, format=".1f"), -1e-9).figure == "0.0"


def test_what_is_no_figure_and_a_call_that_does_not_fit_its_claim_are_refused(monkeypatch):
    for figure in (float("nan"), float("inf"), [0.1, 0.2], [[0.1]], []):
        with pytest.raises(ValueError, match="R01: a value is"):
            decided(HALF, figure)
    rows = load()
    bare = replace(rows, claims=rows.claims | {"R09": replace(rows.claims["R09"], rule=None)})
    monkeypatch.setattr(import_module("course.claims.verdict"), "load", lambda: bare)
    for arguments, error, reason in [
        (("X99", 1.0), KeyError, "no claim 'X99'"),
        (("R08",), ValueError, "R08 needs a value"),
        (("R07", 1.0), ValueError, "R07 needs no value"),
        (("R09", 1.0), ValueError, "R09 has no rule yet"),
    ]:
        with pytest.raises(error, match=reason):
            verdict(*arguments)
