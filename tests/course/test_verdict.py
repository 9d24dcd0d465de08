from importlib import import_module

import pytest

from course.claims import Claim, verdict
from course.claims.rules import Rule, word_of
from course.claims.verdict import MIME, Verdict

FIELDS = {
    "id": "R01",
    "chapter": "02_attention",
    "basis": "measured",
    "scale": "exact",
    "statement": "Cats < dogs.",
    "measure": "Weight of cats.",
}


def claim(rule, **fields):
    return Claim(**FIELDS | fields, rule=Rule.parse(rule))


HALF = claim({"< 0.5": "holds", "otherwise": "refuted: dogs"})


def test_one_number_gets_the_rules_word_and_no_interval():
    shown = Verdict(HALF, 0.25)
    assert (shown.figure, shown.interval, shown.text) == ("0.25", "", "holds")


def test_seeds_give_a_mean_and_students_interval():
    # mean 0.2, standard deviation 0.1, t(0.975, 2 degrees) = 4.3027: half width 0.2484
    shown = Verdict(HALF, [0.1, 0.2, 0.3])
    assert shown.figure == "0.2"
    assert shown.interval == "-0.048 to 0.45 (95 %, 3 seeds)"
    assert shown.text == "holds"


def test_an_interval_across_yes_and_no_decides_nothing():
    assert Verdict(HALF, [0.3, 0.4, 0.5]).text.startswith("too uncertain to tell: the interval")
    both = claim({"< 0.3": "refuted", "< 0.5": "holds", "otherwise": "refuted: dogs"})
    assert word_of(Verdict(both, [0.1, 0.1, 0.9]).text) == "too uncertain to tell"  # ends agree


def test_an_interval_across_holds_and_qualified_gets_the_weaker_word():
    rule = {"< 0.5": "holds", "< 2": "qualified: with dogs", "otherwise": "refuted"}
    assert Verdict(claim(rule), [0.3, 0.4, 0.5]).text == "qualified: with dogs"
    assert Verdict(claim(rule), [0.1, 0.1, 0.9]).text == "qualified: with dogs"


def test_what_processors_move_a_figure_by_counts_as_part_of_its_interval(monkeypatch):
    moved = {"R01": 0.1}
    monkeypatch.setattr(import_module("course.claims.verdict"), "spread", moved.get)
    assert word_of(Verdict(HALF, 0.45).text) == "too uncertain to tell"
    assert "is no farther than processors move" in Verdict(HALF, 0.45).margin
    assert "is 1 to 5 times as far as processors move" in Verdict(HALF, 0.35).margin
    assert "is 5 to 25 times as far as processors move" in Verdict(HALF, -0.1).margin
    assert Verdict(HALF, 0.0).text == "holds"
    moved["R01"] = 0.0
    assert Verdict(HALF, 0.45).margin == "processors do not move the figure"
    # half width 0.2484, as above: 1.2 times as far from the threshold
    assert (
        "1 to 5 times as far as seeds and processors move" in Verdict(HALF, [0.1, 0.2, 0.3]).margin
    )


def test_every_digit_of_a_figure_stands_beside_the_output():
    _, beside = Verdict(HALF, [0.1, 0.2, 0.3])._repr_mimebundle_()
    assert beside == {MIME: {"id": "R01", "seeds": [0.1, 0.2, 0.3]}}


def test_text_page_and_ledger_say_the_same():
    bundle, _ = Verdict(HALF, 0.75)._repr_mimebundle_()
    assert bundle[MIME] == {
        "id": "R01",
        "figure": "0.75",
        "interval": "",
        "margin": "processors do not move the figure",
        "verdict": "refuted: dogs",
    }
    for part in ("0.75", "Weight of cats.", "refuted", "dogs", "holds if"):
        assert part in bundle["text/plain"] and part in bundle["text/html"].replace("&lt;", "<")
    assert "Cats &lt; dogs." in bundle["text/html"]
    assert 'class="verdict verdict-refuted"' in bundle["text/html"]


def test_rounding_errors_are_printed_without_their_digits():
    equal = claim({"<= 1e-10": "holds", "otherwise": "refuted"})
    assert Verdict(equal, 3.1e-16).figure == "below 1e-10"
    assert Verdict(equal, 0.31).figure == "0.31"


def test_no_figure_is_printed_as_minus_zero():
    assert (
        Verdict(claim({"< 0.5": "holds", "otherwise": "refuted"}, format=".1f"), -1e-9).figure
        == "0.0"
    )


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), [0.1, 0.2], [[0.1]], []])
def test_what_is_no_figure_is_refused(figure):
    with pytest.raises(ValueError, match="R01: a figure is"):
        Verdict(HALF, figure)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("X99", 1.0), KeyError, "no claim 'X99'"),
        (("V34", 1.0), ValueError, "V34 has no rule yet"),
        (("R08",), ValueError, "R08 needs a figure"),
        (("R07", 1.0), ValueError, "R07 needs no figure"),
    ],
)
def test_a_call_that_does_not_fit_its_claim_is_refused(arguments, error, said):
    with pytest.raises(error, match=said):
        verdict(*arguments)
