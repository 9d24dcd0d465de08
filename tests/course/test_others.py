"""Stored audits: the files of book/ledger/models, and how the ledger counts them."""

import copy
import json
import subprocess
import sys

import pytest

from book._ext.ledger_page import _others
from course.claims.others import files
from vitlab.claims.ledger import SCHEMA, agreement, claims, others, read


def test_stored_audits_follow_the_schema():
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", SCHEMA, *files()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_the_words_of_a_stored_audit_are_those_of_the_rules(path):
    for row in read(path)["claims"]:
        if row["state"] == "measured" and row["id"] in claims():
            half = 0.0 if row["low"] is None else (row["high"] - row["low"]) / 2
            claim = claims()[row["id"]]
            word = claim.decide(row["figure"], half)
            assert (row["word"], row["agreement"]) == (word, agreement(word, claim.word)), row["id"]


def audit(name, figure, low=None, high=None, untrained=False, state="measured", claim="L20"):
    row = {"id": claim, "state": state, "figure": figure, "low": low, "high": high}
    return {"model": {"name": name, "untrained": untrained}, "claims": [row]}


def test_other_models_are_judged_by_today_s_rule():
    claim = claims()["L20"]  # holds from 0.3, qualified from 0
    found = others(
        [audit("a", 0.5), audit("b", 0.1), audit("c", -1.0), audit("d", 0.0, -0.5, 0.5)], claim
    )
    assert [(one.model, one.agrees) for one in found] == [
        ("a", True), ("b", True), ("c", False), ("d", False)
    ]  # fmt: skip
    assert [one.word for one in found] == [
        "holds", "qualified, in part", "the opposite was seen here", "too uncertain to tell"
    ]  # fmt: skip
    assert found[0].figure == "0.50"
    data = [vars(one) for one in found]
    assert _others(data).startswith("2 of 4 agree: a 0.50, holds; b 0.10, qualified, in part;")


def test_untrained_models_the_book_s_own_and_what_was_not_measured_are_not_counted():
    claim = claims()["L20"]
    assert "cifar10_vit," in claim.setting
    left_out = [
        audit("a", 0.5, untrained=True),
        audit("cifar10_vit", 0.5),
        audit("a", None, state="cannot be asked"),
        audit("a", 0.5, claim="C13"),
    ]
    assert others(left_out, claim) == []
    assert [one.model for one in others([audit("cifar10_vit_gap", 0.5)], claim)] == [
        "cifar10_vit_gap"
    ]


def test_reading_changes_nothing(tmp_path):
    row = audit("a", 0.5)["claims"][0] | {"seconds": 1}
    whole = {"format": 1, "states": {"measured": 1}, "claims": [row], "beside": None, "seed": 0}
    whole |= {"count": 3, "model": {"name": "a", "weights": "", "untrained": False}}
    whole |= {"images": {"source": "", "sha256": ""}}
    (tmp_path / "a.json").write_text(json.dumps(copy.deepcopy(whole)))
    assert read(tmp_path / "a.json") == whole
