from functools import partial

from course.claims.rows import load
from tests.refusals import assert_refused
from vitlab.claims.rules import COMPARE, Rule, word_of


def test_the_word_changes_when_the_figure_crosses_the_rule():
    for claim in load().claims.values():
        for sign, threshold, verdict in claim.rule.cases if claim.rule else ():
            step = 1e-6 * max(abs(threshold), 1e-6)
            inside, outside = threshold - step, threshold + step
            if sign.startswith(">"):
                inside, outside = outside, inside
            assert claim.rule.apply(inside) == verdict, claim.id
            assert word_of(claim.rule.apply(outside)) != word_of(verdict), claim.id
            at_the_edge = claim.rule.apply(threshold)
            assert (at_the_edge == verdict) == COMPARE[sign](threshold, threshold), claim.id


def test_the_first_case_that_fits_decides_and_a_rule_that_is_none_is_refused():
    rule = Rule.parse({"< 1": "holds", "< 2": "qualified, in part: nearly", "otherwise": "refuted"})
    verdicts = ["holds", "qualified, in part: nearly", "refuted"]
    assert [rule.apply(x) for x in (0.5, 1.0, 2.0)] == verdicts
    assert str(rule) == "holds if < 1; qualified, in part if < 2; otherwise refuted"
    cases = [
        ({"< 1": "holds"}, "ends with 'otherwise'"),
        ({"always": "holds", "otherwise": "refuted"}, "expected a comparison.*'always'"),
        ({"about 1": "holds", "otherwise": "refuted"}, "expected a comparison.*'about 1'"),
        ({"< 1": "true", "otherwise": "refuted"}, "begins with one of.*'true'"),
        ({"< 1": "qualified: cats", "otherwise": "refuted"}, "one of.*'qualified: cats'"),
        (
            {"< 1": "qualified, in part", "otherwise": "refuted"},
            "reason after 'qualified, in part'",
        ),
        ({"< 1": "holds", "otherwise": "holds"}, "that differ"),
    ]
    assert_refused((partial(Rule.parse, mapping), said) for mapping, said in cases)
