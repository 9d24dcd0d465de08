"""Stored audits: the files of book/ledger/models, and how the ledger counts them."""

import subprocess
import sys

from course.claims.others import files, others
from vitlab.claims.ledger import SCHEMA, agreement, claims, measured, read


def test_stored_audits_follow_the_schema_and_their_words_are_those_of_the_rules():
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", SCHEMA, *files()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    for path in files():
        for row in measured(read(path)):
            if claim := claims().get(row["id"]):
                for judged in filter(None, (row, row["untrained"])):
                    assert claim.judge(judged).items() <= judged.items(), (path.stem, row["id"])


def audit(name, figure, low=None, high=None, untrained=False, state="measured", claim="L20"):
    row = {"id": claim, "state": state, "figure": figure, "low": low, "high": high}
    images = {"suit": name != "of other images"}
    return {"model": {"name": name, "untrained": untrained}, "images": images, "claims": [row]}


def test_weaker_is_neither_holds_nor_qualified_and_a_figure_of_the_other_sign_does_not_agree():
    holds, part, weak, no = "holds", "qualified, in part", "weaker than claimed", "refuted"
    for words, expected in (
        ((holds, part), "same side"), (("qualified, misprinted", part), "same side"),
        ((weak, weak), "same word"), ((weak, holds), "other side"), ((weak, part), "other side"),
        ((weak, no), "other side"), (("the opposite was seen here", no), "same side"),
        ((no, part), "other side"), (("too uncertain to tell",) * 2, "undecided"),
        (("depends on training", weak), "undecided"), (("cannot be measured here", no), "undecided"),
    ):  # fmt: skip
        assert agreement(*words) == agreement(*words[::-1]) == expected, words
    assert claims()["H29"].value > 0 and claims()["H29"].word == part
    for figure, half, expected in (
        (0.1, 0.05, "same word"), (-0.04, 0.05, "same word"), (-0.04, 0.03, "other sign"),
        (-0.3, 0.1, "same side"),
    ):  # fmt: skip
        (row,) = audit("a", figure, figure - half, figure + half)["claims"]
        assert claims()["H29"].judge(row)["agreement"] == expected, figure


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
        audit("of other images", 0.5),
        audit("cifar10_vit", 0.5),
        audit("a", None, state="cannot be asked"),
        audit("a", 0.5, claim="C13"),
        audit("cifar10_vit_gap", 0.5),
    ]
    assert [row["model"] for row in others(audits, claim)] == ["cifar10_vit_gap"]
