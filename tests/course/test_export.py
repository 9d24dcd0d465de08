"""The ledger as data, and what stored audits of other models say in it."""

import csv
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from datetime import date

import pytest

from book._ext import ledger_page
from course.claims import export
from course.claims.cite import Build, bibtex
from course.claims.export import ledger, table
from course.claims.ledger import Found
from course.claims.others import files, others
from course.claims.rows import Dispute, load
from vitlab.claims.ledger import SCHEMA, agreement, claims, measured, read
from vitlab.claims.rules import word_of

BUILD = Build("0123456789ab", "2026-11-22", "https://example.org/")
INTERVAL = "0.1 to 0.3 (95 %, 3 seeds)"
FOUND = {
    "R65": Found("R65", "below 1e-10", "", "", "holds: by a pair", (1e-12,), "c010"),
    "R74": Found("R74", "0.2", INTERVAL, "", "refuted", (0.1, 0.2, 0.3), "c020"),
}


@pytest.fixture(scope="module")
def data():
    return ledger(FOUND, BUILD)


def claim(data, name):
    return next(claim for claim in data["claims"] if claim["id"] == name)


def refused(schema, files):
    """The names of the files that a schema does not take."""
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", schema, *files]
    done = subprocess.run(command, capture_output=True, text=True)
    found = set(re.findall(r"(\w+)\.json::", done.stdout))
    assert bool(found) == bool(done.returncode), done.stdout
    return found


def test_the_schema_takes_the_data_with_and_without_verdicts_and_nothing_wrong(data, tmp_path):
    right = {"found": data, "open": ledger({}, Build())}
    fields = {"id": "R1", "value": "0.2", "seeds": None, "colour": "red", "since": "today"}
    row = claim(data, "R65")
    wrong = {name: data | {"claims": [row | {name: value}]} for name, value in fields.items()}
    for name, content in (right | wrong).items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert refused(export.SCHEMA, tmp_path.glob("*.json")) == set(wrong)


def test_the_schema_explains_every_field():
    def unexplained(schema, path):
        inner = schema.get("properties", {}) | schema.get("items", {}).get("properties", {})
        below = [name for key in inner for name in unexplained(inner[key], f"{path}.{key}")]
        return below if schema.get("description") else [path, *below]

    assert unexplained(json.loads(export.SCHEMA.read_text()), "ledger") == []


def test_every_claim_is_there_with_raw_numbers_and_its_rule(data):
    assert [claim["id"] for claim in data["claims"]] == list(load().claims)
    found = claim(data, "R74")
    assert found["seeds"] == [0.1, 0.2, 0.3] and found["value"] == pytest.approx(0.2)
    assert found["low"] == pytest.approx(0.2 - 0.2484, abs=1e-4)  # Student's t, 2 degrees
    assert found["rule"]["text"] == str(load().claims["R74"].rule)
    assert found["rule"]["cases"][0]["threshold"] == load().claims["R74"].rule.cases[0][1]
    assert found["url"] == "https://example.org/book/claims/R74.html" and found["cell"] == "c020"
    single = claim(data, "R65")
    assert (single["value"], single["low"], single["word"]) == (1e-12, None, "holds")
    still_open = claim(data, "H40")
    assert (still_open["word"], still_open["value"], still_open["seeds"]) == ("open", None, [])


def test_a_study_s_commit_and_an_author_s_objection_come_along(monkeypatch):
    rows, said = load(), Dispute(date(2026, 11, 22), "A. Author", "Ours is larger.", "No.")
    changed = replace(rows.claims["R74"], study=("digits",), disputed=(said,))
    rows = replace(rows, claims=rows.claims | {"R74": changed})
    monkeypatch.setattr(export, "load", lambda: rows)
    row = claim(made := ledger(FOUND, BUILD), "R74")
    (study,) = row["studies"]
    assert study["command"] == "python -m studies digits"
    assert all(study[field] for field in ("commit", "date", "machine"))
    assert row["disputed"] == [asdict(said) | {"when": "2026-11-22"}]
    assert "2026-11-22: Ours is larger." in table(made)
    shown = ledger_page.entry(changed, FOUND["R74"], row)
    assert 'data-disputed="yes"' in shown and "2026-11-22: Ours is larger. Answer: No." in shown
    assert 'name="disputed"' in ledger_page.filters(FOUND) and ">disputed</span>" in shown


def test_the_table_has_a_row_for_each_claim(data):
    rows = list(csv.DictReader(table(data).splitlines(keepends=True)))
    assert [row["id"] for row in rows] == list(load().claims)
    assert set(rows[0]) == set(data["claims"][0]) == set(export.COLUMNS)
    (row,) = (row for row in rows if row["id"] == "R74")
    assert (row["seeds"], row["word"]) == ("0.1; 0.2; 0.3", "refuted")
    assert row["rule"].endswith(word_of(load().claims["R74"].rule.otherwise))


def test_a_claim_s_entry_names_book_version_commit_and_permalink_and_latex_finds_no_command(data):
    entry = bibtex(claim(data, "R65"), BUILD)
    assert entry.startswith("@misc{minivit-book-R65,\n") and entry.endswith("}\n")
    address = "url = {https://example.org/book/claims/R65.html}"
    for part in ("{{The minivit authors}}", "year = {2026}", "commit 0123456789ab", "holds",
                 "A book that checks its sources", address):  # fmt: skip
        assert part in entry
    odd = bibtex(claim(data, "R65") | {"statement": r"100 % of a_1 & {b} ^2 ~ \x #1 $"}, Build())
    assert "url" not in odd and r"100 \% of a\_1 \& \textbraceleft b\textbraceright" in odd
    for entry in (bibtex(row, BUILD) for row in data["claims"]):
        assert entry.count("{") == entry.count("}")


def test_stored_audits_follow_the_schema_and_their_words_are_those_of_the_rules():
    assert refused(SCHEMA, files()) == set()
    for path in files():
        audit = read(path)
        for row in measured(audit):
            for judged in filter(None, (row, row["untrained"])):
                said = claims()[row["id"]].judge(judged)
                assert said.items() <= judged.items(), (path.stem, row["id"])
        found = Counter(row["agreement"] for row in measured(audit) if not row["proved"])
        assert audit["agreement"] is None or Counter(audit["agreement"]) == found, path.stem


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
    audits = [audit("a", 0.5, untrained=True), audit("a", 0.5, claim="C13")]
    audits += [audit("a", None, state="cannot be asked")]
    audits += [audit(name, 0.5) for name in ("of other images", "cifar10_vit", "cifar10_vit_gap")]
    assert [row["model"] for row in others(audits, claim)] == ["cifar10_vit_gap"]
