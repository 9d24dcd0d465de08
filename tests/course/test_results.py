"""Results that are stored: of the book's studies, and those that papers published."""

import json
import re

import pytest

from course.claims.rows import BOOK
from course.published import FILE, published
from course.results import RESULTS, study


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
