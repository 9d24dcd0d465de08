"""Stored audits: the files of book/ledger/models, and how the ledger counts them."""

import subprocess
import sys

from course.claims.others import files, others
from vitlab.claims.ledger import SCHEMA, agreement, claims, half_of, measured, read


def test_stored_audits_follow_the_schema_and_their_words_are_those_of_the_rules():
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", SCHEMA, *files()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    for path in files():
        for row in measured(read(path)):
            if claim := claims().get(row["id"]):
                word = claim.decide(row["figure"], half_of(row))
                expected = word, agreement(word, claim.word)
                assert (row["word"], row["agreement"]) == expected, (path.stem, row["id"])


def audit(name, figure, low=None, high=None, untrained=False, state="measured", claim="L20"):
    row = {"id": claim, "state": state, "figure": figure, "low": low, "high": high}
    return {"model": {"name": name, "untrained": untrained}, "claims": [row]}


def test_other_models_are_judged_by_today_s_rule_which_holds_from_0_3_and_is_qualified_from_0():
    audits = [audit("a", 0.5), audit("b", 0.1), audit("c", -1.0), audit("d", 0.0, -0.5, 0.5)]
    data = others(audits, claims()["L20"])
    keys = "model", "figure", "word", "agrees"
    assert [tuple(row[key] for key in keys) for row in data] == [
        ("a", "0.50", "holds", True),
        ("b", "0.10", "qualified, in part", True),
        ("c", "-1.00", "the opposite was seen here", False),
        ("d", "0.00", "too uncertain to tell", False),
    ]


def test_untrained_models_the_book_s_own_and_what_was_not_measured_are_not_counted():
    claim = claims()["L20"]
    assert "cifar10_vit," in claim.setting
    audits = [
        audit("a", 0.5, untrained=True),
        audit("cifar10_vit", 0.5),
        audit("a", None, state="cannot be asked"),
        audit("a", 0.5, claim="C13"),
        audit("cifar10_vit_gap", 0.5),
    ]
    assert [row["model"] for row in others(audits, claim)] == ["cifar10_vit_gap"]
