import csv
import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from course.claims import export
from course.claims.cite import Build, bibtex
from course.claims.export import ledger, table
from course.claims.ledger import Found
from course.claims.rows import load
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


def test_the_schema_takes_the_data_with_and_without_verdicts_and_nothing_wrong(data, tmp_path):
    right = {"found": data, "open": ledger({}, Build())}
    fields = {"id": "R1", "value": "0.2", "seeds": None, "colour": "red", "since": "today"}
    wrong = {
        field: data | {"claims": [claim(data, "R65") | {field: value}]}
        for field, value in fields.items()
    }
    for name, content in (right | wrong).items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", export.SCHEMA]
    done = subprocess.run([*command, *tmp_path.glob("*.json")], capture_output=True, text=True)
    assert set(re.findall(r"(\w+)\.json::", done.stdout)) == set(wrong), done.stdout


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
    assert found["url"] == "https://example.org/book/ledger.html#R74" and found["cell"] == "c020"
    single = claim(data, "R65")
    assert (single["value"], single["low"], single["word"]) == (1e-12, None, "holds")
    still_open = claim(data, "H40")
    assert (still_open["word"], still_open["value"], still_open["seeds"]) == ("open", None, [])


def test_a_study_s_commit_date_and_machine_come_along(monkeypatch):
    rows = load()
    with_study = replace(rows.claims["R74"], study=("digits",))
    changed = replace(rows, claims=rows.claims | {"R74": with_study})
    monkeypatch.setattr(export, "load", lambda: changed)
    (study,) = claim(ledger(FOUND, BUILD), "R74")["studies"]
    assert study["command"] == "python -m studies digits"
    assert all(study[field] for field in ("commit", "date", "machine"))


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
    address = "url = {https://example.org/book/ledger.html#R65}"
    for part in ("{{The minivit authors}}", "year = {2026}", "commit 0123456789ab", "holds",
                 "A book that checks its sources", address):  # fmt: skip
        assert part in entry
    odd = bibtex(claim(data, "R65") | {"statement": r"100 % of a_1 & {b} ^2 ~ \x #1 $"}, Build())
    assert "url" not in odd and r"100 \% of a\_1 \& \textbraceleft b\textbraceright" in odd
    for entry in (bibtex(row, BUILD) for row in data["claims"]):
        assert entry.count("{") == entry.count("}")
