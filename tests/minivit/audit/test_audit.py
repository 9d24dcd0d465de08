"""The command, from images to a report, with small probes."""

import json

import pytest
import torch

import minivit
from minivit.cli import main


@pytest.fixture
def audit(probes, tmp_path, capsys):
    """Runs the command on digits_vit; gives its exit code, its report and what it said."""

    def run(*arguments, model="digits_vit", out=tmp_path / "out", images="DIGITS"):
        options = ["--device", "cpu", "--out", str(out), "--count", "12"]
        options += ["--images", str(images)] if images else []
        code = main(["audit", model, *options, *map(str, arguments)])
        said = capsys.readouterr()
        file = out / "audit.json"
        return code, json.loads(file.read_text()) if file.exists() else None, said

    return run


def rows(report):
    return {row["id"]: row for row in report["claims"]}


def test_a_report_has_figures_intervals_words_and_whether_they_agree(audit, tmp_path):
    code, report, said = audit()
    assert code == 0
    assert (
        said.out.startswith("1 of 4 measured claims agree") or "measured claims agree" in said.out
    )
    model = minivit.load("digits_vit")
    images = torch.load  # noqa: F841
    row = rows(report)["A01"]
    assert row["state"] == "measured" and row["count"] == 12
    assert row["low"] < row["figure"] < row["high"]
    assert rows(report)["A03"]["figure"] == pytest.approx(4.5, abs=2)  # the labels are there
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "answers", "audit.html", "audit.json", "audit.md"
    }  # fmt: skip
    assert report["model"]["parameters"] == sum(p.numel() for p in model.parameters())
