"""Verdicts are read from the notebooks' outputs, and the package's ledger is what the book says."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from book.tools.sync_ledger import rows
from course.claims import harvest, load
from course.claims.ledger import MIME
from vitlab.claims.ledger import LEDGER, claims
from vitlab.claims.measurements import MEASUREMENTS


def test_verdicts_are_read_from_stored_outputs_one_a_claim_and_in_the_chapter_that_owns_it(
    tmp_path,
):
    def chapter(name, *ids):
        fields = {"figure": "0.5", "interval": "", "margin": "", "verdict": "holds"}
        data = [{MIME: {"id": claim} | fields, "text/plain": ""} for claim in ids]
        outputs = [new_output("display_data", each) for each in data]
        nbformat.write(new_notebook(cells=[new_code_cell(outputs=outputs)]), tmp_path / name)
        return [tmp_path / name]

    stored = harvest(chapter("02_attention.ipynb", "R08", "R09"))
    assert list(stored) == ["R08", "R09"]
    assert (stored["R08"].figure, stored["R08"].verdict) == ("0.5", "holds")
    with pytest.raises(ValueError, match="03_positions.*R08, which belongs to 02_attention"):
        harvest(chapter("03_positions.ipynb", "R08"))
    with pytest.raises(ValueError, match="R08 has two verdicts"):
        harvest(chapter("02_attention.ipynb", "R08", "R08"))


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


def test_every_claim_with_a_question_is_measured_and_has_a_rule_that_can_judge_it():
    asked = {name: claim for name, claim in load().claims.items() if claim.question}
    assert set(asked) == set(MEASUREMENTS)
    assert all(claim.rule and claim.rule.measures for claim in asked.values())
    assert len({claim.question for claim in asked.values()}) == len(asked)
    for question in (claim.question for claim in asked.values()):
        assert question.endswith("?") and question.count("?") == 1 and len(question) < 200
        assert "this model" in question or "this convolutional network" in question, question
