"""The benchmark of inversion: a small part of it runs, and counts what inversion counts."""

import json
import sys

import pytest
import torch

import minivit
from studies.benchmarks import inversion
from vitlab.inversion import invert


def test_a_part_of_it_runs_and_its_counts_are_those_of_an_inversion(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    out = tmp_path / "bench" / "inversion.json"
    monkeypatch.setattr(
        sys, "argv", f"inversion --models digits_vit --blocks 2 --pictures 1 --evaluations 100 "
        f"--threads {torch.get_num_threads()} --out {out}".split(),
    )  # fmt: skip
    inversion.main()
    rows = {row["optimizer"]: row for row in json.loads(out.read_text())["rows"]}
    assert list(rows) == list(inversion.OPTIMISERS)
    model = minivit.load("digits_vit")
    images = inversion.pictures(model, 1)
    found = invert(model, images, "blocks.1", steps=100)
    row = rows["lbfgs"]
    assert (row["criterion"], row["40 dB"]) == (found.met[0], found.evaluations_to(40)[0])
    assert row["evaluations"] == found.evaluations.item() and row["block"] == 2
    assert capsys.readouterr().out.count(" dB after ") == 4


def test_what_never_arrived_is_said_to_and_ratios_are_bounds_then():
    slow = {"evaluations": 300.0, "criterion": None, "40 dB": 90.0}
    row = {"block": 1, "optimizer": "adam", "seconds per evaluation": 0.5, "psnr": 9.0,
           "evaluations": 300.0, "criterion": 30.0, "40 dB": 45.0}  # fmt: skip
    assert "30   15.00 s  > 10.0 x" in inversion.described(row, slow)
    assert "45   22.50 s     2.0 x" in inversion.described(row, slow)
    assert inversion.described(slow | row | {"40 dB": None}, slow).count("never") == 1
    assert inversion.middle([3, None, 5]) == 5 and inversion.middle([3, None, None]) is None
