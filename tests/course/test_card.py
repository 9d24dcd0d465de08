import re
from dataclasses import replace
from datetime import date

from course.claims import __main__ as command
from course.claims import card
from course.claims.ledger import Found
from course.claims.rows import BOOK, Amendment, Claim
from vitlab.claims.rules import WORDS, Rule

CLAIM = Claim(
    "R01", "Cats < dogs.", "02_attention", "Cats have W_c.", "measured", "small", place="page 3", inferred="It speaks of dogs alone.",
    rule=Rule.parse({"< 0.5": "holds", "otherwise": "the opposite was seen here: cats weigh more"}), setting="five cats",
    because="Half a dog is by convention little.", one_sided="Nobody asked.", since=date(2026, 11, 20),
    amended=(Amendment(date(2026, 11, 21), "holds if < 0.4", "A scale was wrong.", "refuted"),),
)  # fmt: skip
INTERVAL = "0.7 to 0.8 kg (95 %, 5 seeds)"
WORD = "the opposite was seen here: cats weigh more"
FOUND = Found("R01", "0.75 kg", INTERVAL, "the nearest threshold is far", WORD)


def headings(html):
    return re.findall(r"<dt>([^<]+)</dt>", html)


def test_text_keeps_its_short_headings_and_the_page_has_those_a_stranger_can_read():
    text = card.text(CLAIM, card.lines(CLAIM, FOUND))
    assert text.startswith("R01       Cats < dogs.\nverdict   the opposite was seen here: cats")
    html = card.html(CLAIM, FOUND, "x", picture="<img>", more="<dt>Where</dt><dd>here</dd>")
    assert headings(html) == [
        *("Verdict", "Measured", "95 % interval", "Figure", "Models and data", "Rule"),
        *("Why these thresholds", "Why it cannot say 'holds'", "How near a threshold"),
        *("History of the rule", "Rule amended", "Kind of evidence", "Source", "Only implied"),
        "Where",
    ]
    assert "0.7 to 0.8 kg (5 seeds)" in html
    assert "2026-11-20, together with its first verdict" in html
    was = "2026-11-21: it was 'holds if &lt; 0.4', and the verdict 'refuted'. A scale"
    assert was in html.replace("&#x27;", "'")


def test_a_card_is_closed_and_its_line_says_id_word_and_claim():
    html = card.html(CLAIM, FOUND, "verdict-R01")
    assert html.startswith('<details class="verdict verdict-opposite" id="verdict-R01"><summary>')
    line = re.sub("<[^>]+>", "", html.partition("</summary>")[0])
    assert line == "R01 the opposite was seen here only implied Cats &lt; dogs."
    assert "only implied" not in card.html(replace(CLAIM, inferred=""), FOUND, "x")
    still_open = card.html(CLAIM, None, "x")
    assert "verdict-open" in still_open and headings(still_open)[0] == "To be measured"
    assert "W<sub>c</sub>." in still_open and "opposite" not in still_open.split("</summary>")[0]


def test_every_word_has_a_colour_by_day_and_by_night():
    style = (BOOK / "_static/book.css").read_text()
    for word in (*WORDS, "open"):
        name = re.search(rf"\.{card.css_class(word)} \{{ --verdict: var\((--[\w-]+)\)", style)
        assert name and len(re.findall(rf"^  {name[1]}: #", style, re.MULTILINE)) == 2, word


def test_the_terminal_prints_a_card_for_each_id_and_one_line_if_unknown(monkeypatch, capsys):
    monkeypatch.setattr(command, "harvest", lambda: {"R01": FOUND})
    assert command.main(["r01", "H40"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith("R01  ") and "the opposite was seen here: cats weigh more" in first
    assert second.startswith("H40  ") and "open      " in second
    assert command.main(["R01", "X1", "R99"]) == 2
    printed = capsys.readouterr()
    assert re.fullmatch(r"no claim X1, R99: there are R01 to R\d\d, .*D01 to D\d\d\n", printed.err)
    assert printed.out == ""
