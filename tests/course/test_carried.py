"""What the package carries of the ledger is what the book says, and its probes ask no other."""

import json

from book.tools.carried import carried
from course.claims import harvest, load
from vitlab.claims.ledger import LEDGER, claims
from vitlab.claims.probe import PROBES as SEEN
from vitlab.claims.probes import PROBES

CLAIMS = load().claims


def test_the_claims_that_are_carried_are_those_of_claims_yml_and_of_the_stored_cards():
    there = json.loads(LEDGER.read_text(encoding="utf-8"))
    assert there == json.loads(json.dumps(carried())), "run python -m book.tools.carried"
    assert {claim["id"] for claim in there["claims"]} == set(PROBES)


def test_a_carried_rule_decides_as_the_book_s_does():
    found = harvest()
    for name, claim in claims().items():
        own = CLAIMS[name]
        assert claim.rule == own.rule and claim.verdict == found[name].verdict
        assert claim.printed(claim.value) == found[name].figure
        for x in (*claim.rule.thresholds, claim.value):
            assert claim.rule.decide(x, 0.01) == own.rule.decide(x, 0.01)


def test_the_claims_marked_in_the_ledger_are_those_that_have_a_probe():
    assert PROBES is SEEN
    assert {name for name, claim in CLAIMS.items() if claim.probe} == set(PROBES)


def test_every_probe_gives_a_figure_that_a_rule_can_judge():
    for name in PROBES:
        rule = CLAIMS[name].rule
        assert rule is not None and rule.measures, name


def test_every_probe_asks_one_question_of_its_model():
    asked = [probe.asks for probe in PROBES.values()]
    assert len(set(asked)) == len(asked)
    for question in asked:
        assert question.endswith("?") and question.count("?") == 1 and len(question) < 200
        assert "this model" in question or "this convolutional network" in question, question
