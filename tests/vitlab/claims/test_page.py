"""The audit's page and tables: what they say, where figures stand, and that the page stands alone."""

import math
import re

import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from scipy import stats

import minivit
from tests.vitlab.claims import small
from vitlab.claims.answers import Answer
from vitlab.claims.images import Images
from vitlab.claims.interval import half_width
from vitlab.claims.ledger import AGREEMENTS, agreement
from vitlab.claims.looks import looks
from vitlab.claims.page import html, markdown, summary
from vitlab.claims.probe import Measured
from vitlab.claims.report import report
from vitlab.claims.rules import NO, UNCERTAIN, UNMEASURED, WORDS, YES, Rule
from vitlab.claims.strips import strip

IMAGES = Images(torch.zeros(4, 1, 8, 8), None, "<folder>", "no classes", ("a|b.png: bad",), "Own.")
ABOUT = {"class": "m.M", "parameters": 5, "weights": "0" * 64, "modules": "1" * 64}
MADE = {
    "seed": 0,
    "device": "cpu",
    "versions": {"minivit": "0.1.0", "python": "3.11", "torch": "2.13"},
    "code": "2" * 64,
    "count": 4,
    "command": "python -m vitlab audit '<name>'",
    "date": "2026-11-23",
}


@pytest.fixture
def made():
    each = torch.tensor([0.2, 0.4, 0.3, 0.5])
    curves = {"by block": torch.tensor([0.0, math.nan, 1.0]), "other": torch.ones(3)}
    measured = Measured(0.35, each, {"untrained": 0.1, "far": 99.0, "none": math.inf}, curves)
    answers = [
        Answer.of("A01", measured, 1.5),
        Answer.of("A02", Measured(-0.2), 0.1),
        Answer("A03", "cannot be asked", "no <b>attention</b> | at all"),
        Answer("A04", "failed", "KeyError: 'x'"),
    ]
    model = {"name": "<script>alert(1)</script>", "licence": None, "untrained": True, **ABOUT}
    return report(
        answers, small.PROBES, small.CLAIMS, model=model, beside=None, images=IMAGES, **MADE
    )


@pytest.fixture
def page(made):
    return BeautifulSoup(html(made, small.CLAIMS, [], "no attention"), "html.parser")


def test_the_page_asks_nothing_of_anybody_and_runs_nothing(made, page):
    assert not page.find_all(["script", "link", "iframe", "object", "form"])
    text = html(made, small.CLAIMS, [], "")
    assert "<script" not in text and not re.search(r"https?:|url\(|@import|src=\"(?!data:)", text)
    assert page.h1.get_text() == "<script>alert(1)</script>"


def test_the_page_says_what_was_found_and_what_was_not(page, made):
    row = page.select_one("table.claims tbody tr").get_text(" ")
    assert "0.35" in row and "holds" in row or "qualified" in row
    text = " ".join(page.get_text().split())
    assert summary(made) in text and "This model is untrained" in text
    assert "Could not be asked of this model: no <b>attention</b> | at all" in text
    assert "Failed: KeyError: 'x'" in text and "Not drawn: no attention" in text
    for said in (
        "Own.",
        "0" * 64,
        "4 of <folder>",
        "a|b.png: bad",
        "minivit 0.1.0",
        MADE["command"],
    ):
        assert said in text


def test_tables_have_headings_and_every_link_leads_somewhere(page):
    for table in page.find_all("table"):
        for row in table.select("tbody tr:not([aria-hidden])"):
            assert row.find("th", scope="row"), row
    for drawing in page.find_all("svg"):
        hidden = drawing.get("aria-hidden") or drawing.find_parent(attrs={"aria-hidden": True})
        assert hidden or drawing.get("aria-label"), drawing
    ids = [tag["id"] for tag in page.select("[id]")]
    assert len(set(ids)) == len(ids)
    assert {link["href"].removeprefix("#") for link in page.find_all("a")} <= set(ids)
    for name in page.select("[aria-labelledby]"):
        assert name["aria-labelledby"] in ids


def test_curves_leave_out_what_is_no_number_and_have_a_table(page):
    lines = [line["points"] for line in page.select("polyline")]
    assert lines == ["0.00,40.00 100.00,0.00", "0.00,0.00 50.00,0.00 100.00,0.00"]
    cells = [cell.get_text() for cell in page.select(".curves td")]
    assert cells == ["0", "none", "1", "1", "1", "1"]


def test_the_tables_for_an_appendix_have_as_many_cells_in_every_row(made):
    text = markdown(made)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    assert "| A01 |" in text and "0.35" in text and "no <b>attention</b> \\| at all" in text
    assert "A01: untrained 0.1, far 99" in text


def test_figures_stand_in_the_zone_of_their_word():
    claim = small.CLAIMS["A01"]  # holds from 0.3, qualified from 0, else refuted
    figures = (-5.0, -0.01, 0.0, 0.1, 0.299, 0.3, 4.0)
    found = strip(claim, [("m", "model", x, None, None, "") for x in figures])
    assert [zone.word for zone in found.zones] == ["refuted", "qualified, in part", "holds"]
    assert [zone.side for zone in found.zones] == ["no", "part", "yes"]
    assert sum(zone.width for zone in found.zones) == pytest.approx(100)
    for figure, mark in zip(figures, found.marks, strict=True):
        words = [z.word for z in found.zones if z.left <= mark.at <= z.left + z.width + 0.01]
        assert claim.decide(figure, 0) in words and not mark.beyond


def test_a_baseline_far_away_stands_at_the_edge_and_squeezes_nothing():
    rows = [("m", "model", 0.2, 0.1, 0.3, ""), ("b", "baseline", 99.0, None, None, "")]
    model, far = strip(small.CLAIMS["A01"], rows).marks
    assert (far.at, far.beyond) == (100, "above") and 40 < model.at < 80
    assert model.left < model.at < model.right
    low = strip(small.CLAIMS["A01"], [*rows, ("c", "baseline", -99.0, None, None, "")]).marks[-1]
    assert (low.at, low.beyond) == (0, "below")


def test_what_is_equal_up_to_rounding_stands_on_a_logarithmic_scale():
    rule = Rule.parse({"<= 1e-10": "holds", "otherwise": "refuted"})
    claim = small.claim("A06", "holds", 1e-15, rule=rule)
    ((at, text),) = strip(claim, [("m", "model", 1e-15, None, None, "")]).ticks
    assert at > 80 and text == "1e-10"
    nothing = strip(claim, [("m", "model", 0.0, None, None, "")])  # no logarithm
    assert nothing.marks[0].at < nothing.ticks[0][0]


def test_every_pair_of_words_agrees_or_not():
    for word in WORDS:
        for book in WORDS:
            found = agreement(word, book)
            assert found in AGREEMENTS
            if {word, book} & {UNCERTAIN}:
                assert found == "undecided"
            elif word == book:
                assert found == "same word"
            elif {word, book} & {*UNMEASURED}:
                assert found == "undecided"
            else:
                assert (found == "same side") == ((word in YES) == (book in YES))
                assert (found == "other side") == ((word in NO) != (book in NO))


def test_the_interval_is_student_s_and_a_single_number_has_none():
    each = np.array([0.2, 0.4, 0.3, 0.9])
    low, high = stats.t.interval(0.95, 3, each.mean(), stats.sem(each))
    assert half_width(each) == pytest.approx((high - low) / 2) and half_width(each[:1]) == 0
    answer = Answer.of("A01", Measured(0.2, torch.tensor([0.2])), 0.0)
    assert answer.half is None and answer.count == 0
    bad = Answer.of("A01", Measured(0.2, torch.tensor([0.2, math.nan])), 0.0)
    assert (bad.state, bad.figure) == ("cannot be asked", None)
    assert bad.reason == "its figure is not a finite number for some of the images"


def test_two_images_are_shown_where_attention_is_recorded_and_else_why_not():
    vit, images = minivit.load("digits_vit"), torch.rand(5, 1, 8, 8)
    found, why = looks(vit, images)
    assert len(found) == 2 and not why
    assert all(look.source.startswith("data:image/png;base64,") for look in found)
    assert "Image 3 in grey" in found[1].alt and "4 blocks" in found[1].alt
    found, why = looks(minivit.load("digits_resnet"), images)
    assert found == [] and "computes no attention" in why
