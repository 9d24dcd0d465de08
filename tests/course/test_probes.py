from course.claims.rows import load
from vitlab.claims.probe import PROBES as SEEN
from vitlab.claims.probes import PROBES

CLAIMS = load().claims


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
