"""What is stored: results of studies and papers, verdicts in notebooks, and the package's ledger."""

import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from book.tools.sync_ledger import rows
from course.claims.ledger import MIME, harvest
from course.claims.rows import BOOK, load
from course.published import FILE, published
from course.results import RESULTS, study
from vitlab.claims.ledger import LEDGER, claims
from vitlab.claims.measurements import MEASUREMENTS


def test_what_the_book_keeps_of_a_study_can_be_read_and_was_computed_at_a_commit():
    for path in RESULTS.glob("*.json"):
        results, stored = study(path.stem), json.loads(path.read_text())
        assert results.name == path.stem == stored["study"] and results.rows == stored["rows"]
        for name, row in results.rows.items():
            where = path.stem, name
            assert not str(row.get("commit", "")).endswith("+"), where
            if "commit" in row:  # of a survey: it trains nothing, and each row has its provenance
                assert row["seconds"] >= 0, where
                continue
            assert row["parameters"] > 0 and row["operations"] > 0, where
            if "accuracy" in row:
                accuracy = row["accuracy"]
                assert accuracy["low"] <= accuracy["mean"] <= accuracy["high"], where
                assert accuracy["over"] in ("seeds", "test pictures"), where
                assert {"log_likelihood", "calibration_error", "train_accuracy"} <= row.keys()
    runs = [json.loads(path.read_text()) for path in RESULTS.glob("runs/*.json")]
    assert runs and not [run["key"] for run in runs if run["commit"].endswith("+")]


def test_what_is_not_kept_is_refused_with_the_names_of_what_is():
    for name in ("dogs", "digits.json", "", "../claims"):
        with pytest.raises(ValueError, match=f"no results of a study '{name}': there are .*digits"):
            study(name)
    for table in (("dosovitskiy2021", "table 3"), ("nobody2020", "table 2")):
        with pytest.raises(ValueError, match="there are dosovitskiy2021, table 2, dosov"):
            published(*table)


def test_a_published_table_is_read_by_its_paper_and_its_rows_have_the_same_fields():
    papers = json.loads(FILE.read_text(encoding="utf-8"))
    references = (BOOK / "references.bib").read_text(encoding="utf-8")
    assert {paper for paper in papers} <= set(re.findall(r"^@\w+\{(\w+),", references, re.M))
    for table in ("table 2", "table 6"):
        assert len({tuple(row) for row in published("dosovitskiy2021", table).values()}) == 1
    rows = published("dosovitskiy2021", "table 2")
    assert rows["ViT-H/14, JFT-300M"]["accuracy"]["ImageNet"] == 88.55


def test_verdicts_are_read_from_outputs_one_a_claim_in_its_chapter(tmp_path):
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
