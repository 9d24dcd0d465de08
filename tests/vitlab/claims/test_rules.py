import pytest

from course.claims.rows import load
from vitlab.claims.rules import COMPARE, Rule, word_of

RULES = [claim for claim in load().claims.values() if claim.rule and claim.rule.measures]


def test_the_word_changes_when_the_figure_crosses_the_rule():
    cases = [(claim.id, claim.rule, *case) for claim in RULES for case in claim.rule.cases]
    assert len(cases) > 200
    stuck = []
    for name, rule, sign, threshold, verdict in cases:
        step = 1e-6 * max(abs(threshold), 1e-6)
        inside, outside = threshold - step, threshold + step
        if sign.startswith(">"):
            inside, outside = outside, inside
        on_it = rule.apply(threshold) == verdict
        if (
            rule.apply(inside) != verdict
            or word_of(rule.apply(outside)) == word_of(verdict)
            or on_it != COMPARE[sign](threshold, threshold)
        ):
            stuck.append((name, sign, threshold))
    assert stuck == []


def test_the_first_case_that_fits_decides():
    rule = Rule.parse({"< 1": "holds", "< 2": "qualified, in part: nearly", "otherwise": "refuted"})
    assert [rule.apply(x) for x in (0.5, 1.0, 2.0)] == [
        "holds",
        "qualified, in part: nearly",
        "refuted",
    ]
    assert str(rule) == "holds if < 1; qualified, in part if < 2; otherwise refuted"


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({"< 1": "holds"}, "ends with 'otherwise'"),
        ({"always": "holds", "otherwise": "refuted"}, "expected a comparison.*'always'"),
        ({"about 1": "holds", "otherwise": "refuted"}, "expected a comparison.*'about 1'"),
        ({"< 1": "true", "otherwise": "refuted"}, "begins with one of.*'true'"),
        (
            {"< 1": "qualified: cats", "otherwise": "refuted"},
            "begins with one of.*'qualified: cats'",
        ),
        ({"< 1": "qualified, in part", "otherwise": "refuted"}, "'qualified, in part' needs a rea"),
        ({"< 1": "holds", "otherwise": "holds"}, "must differ"),
    ],
)
def test_a_rule_that_is_none_is_refused(mapping, said):
    with pytest.raises(ValueError, match=said):
        Rule.parse(mapping)
