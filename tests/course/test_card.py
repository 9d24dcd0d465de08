import re
import subprocess
import sys
from dataclasses import replace
from datetime import date

import pytest

from course.claims import __main__ as command
from course.claims import card
from course.claims.ledger import Found
from course.claims.rows import BOOK, Amendment, Claim
from vitlab.claims.rules import WORDS, Rule

CLAIM = Claim(
    id="R01",
    chapter="02_attention",
    basis="measured",
    scale="small",
    statement="Cats < dogs.",
    measure="Weight of cats.",
    setting="five cats",
    place="page 3",
    inferred="It speaks of dogs alone.",
    rule=Rule.parse({"< 0.5": "holds", "otherwise": "the opposite was seen here: cats weigh more"}),
    because="Half a dog is by convention little.",
    one_sided="Nobody asked.",
    since=date(2026, 11, 20),
    amended=(Amendment(date(2026, 11, 21), "holds if < 0.4", "A scale was wrong.", "refuted"),),
)
INTERVAL = "0.7 to 0.8 kg (95 %, 5 seeds)"
WORD = "the opposite was seen here: cats weigh more"
FOUND = Found("R01", "0.75 kg", INTERVAL, "the nearest threshold is far", WORD)


def headings(html):
    return re.findall(r"<dt>([^<]+)</dt>", html)


def test_text_keeps_its_short_headings_and_the_page_has_those_a_stranger_can_read():
    said = card.text(CLAIM, card.lines(CLAIM, FOUND))
    assert said.startswith("R01       Cats < dogs.\nverdict   the opposite was seen here: cats")
    html = card.html(CLAIM, FOUND, "x")
    assert {name for name, _ in card.lines(CLAIM, FOUND)} <= set(card.HEADINGS)
    assert headings(html) == [
        "Verdict", "Measured", "95 % interval", "Models and data", "Rule", "Why these thresholds",
        "Why it cannot say 'holds'", "How near a threshold", "History of the rule", "Rule amended",
        "Kind of evidence", "Source", "Only implied",
    ]  # fmt: skip
    assert "0.7 to 0.8 kg (5 seeds)" in html
    assert "2026-11-20, together with its first verdict" in html
    assert "2026-11-21: it was 'holds if &lt; 0.4', and the verdict 'refuted'. A scale" in (
        html.replace("&#x27;", "'")
    )


def test_a_card_is_closed_and_its_line_says_id_word_and_claim():
    html = card.html(CLAIM, FOUND, "verdict-R01")
    assert html.startswith('<details class="verdict verdict-opposite" id="verdict-R01"><summary>')
    line = re.sub("<[^>]+>", "", html.partition("</summary>")[0])
    assert line == "R01 the opposite was seen here only implied Cats &lt; dogs."
    stated = card.html(replace(CLAIM, inferred=""), FOUND, "verdict-R01")
    assert "only implied" not in stated


def test_a_figure_stands_behind_what_was_found():
    html = card.html(CLAIM, FOUND, "x", picture="<img>", more=[("Where", "here")])
    order = headings(html)
    assert order.index("Figure") == order.index("95 % interval") + 1 and order[-1] == "Where"


def test_an_open_claim_says_what_will_be_measured():
    html = card.html(CLAIM, None, "x")
    assert "verdict-open" in html and headings(html)[0] == "To be measured"
    assert "Weight of cats." in html and "opposite" not in html.partition("</summary>")[0]


@pytest.mark.parametrize("word", [*WORDS, "open"])
def test_every_word_has_a_colour_by_day_and_by_night(word):
    style = (BOOK / "_static/book.css").read_text()
    name = re.search(rf"\.{card.css_class(word)} \{{ --verdict: var\((--[\w-]+)\)", style)
    assert name and len(re.findall(rf"^  {name[1]}: #", style, re.MULTILINE)) == 2


@pytest.fixture
def no_chapters(monkeypatch):
    monkeypatch.setattr(command, "harvest", lambda: {"R01": FOUND})


def test_the_terminal_prints_a_card_for_each_id(no_chapters, capsys):
    assert command.main(["r01", "H40"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith("R01  ") and "the opposite was seen here: cats weigh more" in first
    assert second.startswith("H40  ") and "open      " in second


def test_an_unknown_id_is_one_clear_line(no_chapters, capsys):
    assert command.main(["R01", "X1", "R99"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"no claim X1, R99: there are R01 to R\d\d, .*L01 to L\d\d\n", said.err)


def test_the_command_is_there():
    run = [sys.executable, "-m", "course.claims", "--help"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "python -m course.claims" in done.stdout
