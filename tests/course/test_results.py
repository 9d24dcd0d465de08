import json
import subprocess
import sys

import pytest

from course.results import RESULTS, study

STORED = sorted(path.stem for path in RESULTS.glob("*.json"))
FOUND = {
    "study": "cats",
    "seeds": [0],
    "rows": {"old": {"parameters": 2, "diverged": 1}, "new": {"parameters": 1}},
    "seconds": 1.0,
    "commit": "0123+",
    "machine": "toaster",
    "torch": "2",
    "date": "2026-01-01",
}


@pytest.mark.parametrize("name", STORED)
def test_what_the_book_keeps_of_a_study_can_be_read_with_every_row(name):
    results = study(name)
    stored = json.loads((RESULTS / f"{name}.json").read_text())
    assert results.name == name == stored["study"] and results.rows == stored["rows"]
    for part in (results.command, stored["commit"], stored["date"], stored["machine"]):
        assert part in results.provenance
    for row in results.rows.values():
        if "commit" in row:  # of a survey: it trains nothing, and each row has its provenance
            assert row["seconds"] >= 0
            continue
        assert row["parameters"] > 0 and row["operations"] > 0
        if "accuracy" in row:
            accuracy = row["accuracy"]
            assert accuracy["low"] <= accuracy["mean"] <= accuracy["high"]
            assert accuracy["over"] in ("seeds", "test pictures")
            assert {"log_likelihood", "calibration_error", "train_accuracy"} <= row.keys()


def test_rows_keep_the_studys_order_and_the_provenance_is_one_line(tmp_path):
    (tmp_path / "cats.json").write_text(json.dumps(FOUND))
    results = study("cats", tmp_path)
    assert list(results.rows) == ["old", "new"]
    assert results.provenance == (
        "python -m studies cats (commit 0123+, seed 0; toaster; 2026-01-01)"
    )
    (tmp_path / "cats.json").write_text(json.dumps(FOUND | {"seeds": [0, 1]}))
    assert "seeds 0, 1;" in study("cats", tmp_path).provenance


@pytest.mark.parametrize("name", ["dogs", "digits.json", "runs/0e7c23106427", "", "../claims"])
def test_an_unknown_study_is_refused_with_the_names_of_those_there_are(name, tmp_path):
    with pytest.raises(ValueError, match=f"no results of a study '{name}': there are .*digits"):
        study(name)
    with pytest.raises(ValueError, match="there are none"):
        study(name, tmp_path)


@pytest.mark.parametrize("folder", ["book/solutions", "."])
def test_results_are_found_from_wherever_a_notebook_runs(folder):
    root = RESULTS.parents[1]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from course.results import study; "
    code += "assert study('digits').rows"
    subprocess.run([sys.executable, "-c", code], cwd=root / folder, check=True)


def test_what_is_stored_was_computed_at_a_commit():
    runs = [json.loads(path.read_text()) for path in RESULTS.glob("runs/*.json")]
    assert runs and not [run["key"] for run in runs if run["commit"].endswith("+")]
    rows = [
        (path.stem, name, str(row.get("commit", "")))
        for path in RESULTS.glob("*.json")
        for name, row in study(path.stem).rows.items()
    ]
    assert rows and not [row for row in rows if row[2].endswith("+")]
