"""What the package carries of the ledger is what the book says."""

import json

from book.tools.carried import carried
from course.claims import harvest, load
from vitlab.claims.ledger import LEDGER, claims
from vitlab.claims.probe import PROBES


def test_the_claims_that_are_carried_are_those_of_claims_yml_and_of_the_stored_cards():
    there = json.loads(LEDGER.read_text(encoding="utf-8"))
    assert there == json.loads(json.dumps(carried())), "run python -m book.tools.carried"
    assert {claim["id"] for claim in there["claims"]} == set(PROBES)


def test_a_carried_rule_decides_as_the_book_s_does():
    found = harvest()
    for name, claim in claims().items():
        own = load().claims[name]
        assert claim.rule == own.rule and claim.verdict == found[name].verdict
        assert claim.printed(claim.value) == found[name].figure
        for x in (*claim.rule.thresholds, claim.value):
            assert claim.rule.decide(x, 0.01) == own.rule.decide(x, 0.01)
