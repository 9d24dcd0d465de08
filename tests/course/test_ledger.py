import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course.claims import harvest
from course.claims.ledger import MIME


def chapter(folder, name, *claims):
    said = [
        {"id": c, "figure": "0.5", "interval": "", "margin": "", "verdict": "holds"} for c in claims
    ]
    outputs = [new_output("display_data", {MIME: s, "text/plain": ""}) for s in said]
    path = folder / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(outputs=outputs)]), path)
    return path


def test_verdicts_are_read_from_stored_outputs(tmp_path):
    found = harvest([chapter(tmp_path, "02_attention", "R08", "R09")])
    assert list(found) == ["R08", "R09"]
    assert (found["R08"].figure, found["R08"].verdict) == ("0.5", "holds")


def test_a_verdict_in_a_chapter_that_does_not_own_the_claim_is_refused(tmp_path):
    with pytest.raises(ValueError, match="03_positions.*R08, which belongs to 02_attention"):
        harvest([chapter(tmp_path, "03_positions", "R08")])


def test_two_verdicts_on_one_claim_are_refused(tmp_path):
    with pytest.raises(ValueError, match="R08 has two verdicts"):
        harvest([chapter(tmp_path, "02_attention", "R08", "R08")])
