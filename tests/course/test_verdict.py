from dataclasses import replace
from importlib import import_module

import pytest

from course.claims import Claim, verdict
from course.claims.ledger import MIME
from course.claims.rows import load
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
    assert with_unit.figure == "0.2 dB"
    assert with_unit.interval == "-0.048 to 0.45 dB (95 %, 3 seeds)"


GRADED = {
    "< 0.3": "holds",
    "< 0.5": "qualified, in part: cats",
    "< 0.7": "weaker than claimed",
    "otherwise": "the opposite was seen here: dogs",
}
BOTH_ENDS_NO = {"< 0.3": "refuted", "< 0.5": "holds", "otherwise": "refuted: dogs"}
IN_ITS_WORDS = {"< 0.5": "holds", "otherwise": "refuted", "uncertain": "some cats are"}


@pytest.mark.parametrize(
    ("rule", "seeds", "verdict"),
    [
        (GRADED, [0.29, 0.3, 0.31], "qualified, in part: cats"),
        (GRADED, [0.2, 0.25, 0.3], "qualified, in part: cats"),
        (GRADED, [0.4, 0.5, 0.4], "weaker than claimed"),
        (GRADED, [0.2, 0.3, 0.4], "weaker than claimed"),
        (GRADED, [0.6, 0.7, 0.8], "too uncertain to tell: the interval reaches across"),
        (BOTH_ENDS_NO, [0.1, 0.1, 0.9], "too uncertain to tell: the interval reaches across"),
        (IN_ITS_WORDS, [0.3, 0.4, 0.5], "too uncertain to tell: some cats are"),
    ],
)
def test_an_interval_gets_the_weakest_word_on_it_and_none_across_yes_and_no(rule, seeds, verdict):
    assert decided(claim(rule), seeds).verdict.startswith(verdict)


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
