"""The words, the page and the tables of an audit: what they say, and that the page stands alone."""

import math
import re
from functools import partial

import pytest
import torch
from bs4 import BeautifulSoup

from course.claims.rows import load
from tests.refusals import assert_refused
from tests.vitlab.claims import small
from vitlab.claims.audit import Audit
from vitlab.claims.measurements import ask
from vitlab.claims.measuring import Measured, Measurement, NotApplicable
from vitlab.claims.rules import COMPARE, Rule, word_of
from vitlab.commands.audit import rendered, summary


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
        ({"about 1": "holds", "otherwise": "refuted"}, "expected a comparison.*'about 1'"),
        ({"< 1": "qualified: cats", "otherwise": "refuted"}, "one of.*'qualified: cats'"),
        ({"< 1": "qualified, in part", "otherwise": "refuted"}, "after 'qualified, in part'"),
        ({"< 1": "holds", "otherwise": "holds"}, "that differ"),
    ]
    assert_refused((partial(Rule.parse, mapping), said) for mapping, said in cases)


EACH = torch.tensor([0.2, 0.4, 0.3, 0.5])
CURVES = {"by block": torch.tensor([0.0, math.nan, 1.0]), "other": torch.ones(3)}
BASELINES = {"far": 99.0, "none": math.inf}
TWIN = Measured(0.1, EACH - 0.25)


@pytest.fixture(scope="module")
def report():
    """An audit with every state, of names that are no HTML."""
    with pytest.MonkeyPatch.context() as patch:
        measurements = small.install(patch.setattr)
        functions = (
            lambda subject: Measured(0.35, EACH, BASELINES, CURVES, TWIN),
            lambda subject: Measured(-0.2, EACH[:1]),
            small.raising(NotApplicable("no <b>attention</b> | at all")),
            small.raising(KeyError("x")),
        )
        for name, function in zip(measurements, functions, strict=True):
            measurements[name] = Measurement(function)
        opened = Audit("digits_vit", images="DIGITS", count=4, untrained=True, device="cpu")
        answers = [ask(name, opened.subject, 0) for name in measurements]
        report = opened.report(answers, "python -m vitlab audit '<name>'")
    report["model"] = report["model"] | {"name": "<script>alert(1)</script>"}
    report["images"] |= {"source": "<folder>", "skipped": ["a|b.png: bad"]}
    return report


def test_the_page_says_what_was_measured_asks_nothing_of_anybody_and_runs_nothing(report):
    text = " ".join(BeautifulSoup(rendered(report, "html"), "html.parser").get_text().split())
    for part in (
        summary(report),
        "This model is untrained",
        "0.35 (0.145 to 0.555) qualified, in part 0.10: too uncertain to tell 0.40: holds same side",
        "0.35 (0.145 to 0.555); no different from the same model untrained, 0.10; far: 99.",
        "-0.20 powers of ten refuted 0.10: qualified, in part other side",
        "Could not be asked of this model: no <b>attention</b> | at all",
        "Failed: an error in the audit: KeyError: 'x'",
        report["model"]["weights"],
        "4 of <folder>",
        "a|b.png: bad",
        f"minivit {report['versions']['minivit']}",
        "python -m vitlab audit '<name>'",
    ):
        assert part in text
    text = rendered(report, "html")
    page = BeautifulSoup(text, "html.parser")
    assert not page.find_all(["script", "link", "iframe", "object", "form"])
    assert "<script" not in text and not re.search(r"https?:|url\(|@import|src=", text)
    assert page.h1.get_text() == "<script>alert(1)</script>"
    for row in page.select("tbody tr"):
        assert row.find("th", scope="row")
    ids = [tag["id"] for tag in page.select("[id]")]
    assert len(set(ids)) == len(ids)
    assert {link["href"].removeprefix("#") for link in page.find_all("a")} <= set(ids)


def test_figures_and_tables_have_no_holes(report):
    row, single = report["claims"][:2]
    assert row["curves"] == {"by block": [0.0, None, 1.0], "other": [1.0] * 3}
    assert row["baselines"] == {"far": 99.0} and row["count"] == 4
    assert row["untrained"]["low"] == pytest.approx(0.1 - (0.35 - row["low"]))
    assert (single["low"], single["count"]) == (None, 0)
    text = rendered(report, "md")
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    assert "| A01 |" in text and "0.35" in text and "no <b>attention</b> \\| at all" in text
    assert "A01: far 99" in text and "| 0.10: too uncertain to tell |" in text
