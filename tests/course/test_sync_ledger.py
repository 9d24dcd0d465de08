"""What the package has of the ledger is what the book says, and each of its claims is measured."""

import json

import pytest

from book.tools.sync_ledger import rows
from course.claims import harvest, load
from vitlab.claims.ledger import LEDGER, claims
from vitlab.claims.measurements import MEASUREMENTS


def test_the_package_s_claims_are_those_of_claims_yml_and_of_the_stored_cards():
    stored, current = json.loads(LEDGER.read_text(encoding="utf-8")), rows()
    numbers = ("value", "low", "high")  # whose last digit differs between processors
    for a, b in zip(stored["claims"], current["claims"], strict=True):
        for number in numbers:
            there, here = a.pop(number), b.pop(number)
            assert there == here or there == pytest.approx(here, rel=1e-12)
    assert stored == json.loads(json.dumps(current)), "run python -m book.tools.sync_ledger"


def test_a_rule_of_the_package_decides_as_the_book_s_does():
    verdicts = harvest()
    for name, claim in claims().items():
        own = load().claims[name]
        assert claim.rule == own.rule and claim.verdict == verdicts[name].verdict
        assert claim.printed(claim.value) == verdicts[name].figure
        for x in (*claim.rule.thresholds, claim.value):
            assert claim.rule.decide(x, 0.01) == own.rule.decide(x, 0.01)


def test_every_claim_with_a_question_is_measured_and_has_a_rule_that_can_judge_it():
    asked = {name: claim for name, claim in load().claims.items() if claim.question}
    assert set(asked) == set(MEASUREMENTS)
    assert all(claim.rule and claim.rule.measures for claim in asked.values())
    questions = [claim.question for claim in asked.values()]
    assert len(set(questions)) == len(questions)
    for question in questions:
        assert question.endswith("?") and question.count("?") == 1 and len(question) < 200
        assert "this model" in question or "this convolutional network" in question, question
