"""The command, from images to a report, with small measurements."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
import torch
from PIL import Image

import minivit
from book.tools.address import ROOT
from tests.vitlab.claims import small
from vitlab.claims import images
from vitlab.claims.images import images_for
from vitlab.claims.ledger import AGREEMENTS, SCHEMA
from vitlab.claims.measurements import ask
from vitlab.claims.measuring import Measured, Measurement, NotApplicable, Subject
from vitlab.commands import main
from vitlab.convert.open_model import open_any

DIGITS = cache(images.load_data)


@pytest.fixture
def measurements(monkeypatch):
    """The small measurements by claim; what is put in and taken out is what the command has."""
    monkeypatch.setattr(images, "load_data", DIGITS)
    return small.install(monkeypatch.setattr)


@pytest.fixture
def audit(measurements, tmp_path, capsys):
    """Runs the command on digits_vit; gives its exit code, its report with the claims by name, and
    what it prints."""

    def run(*arguments, model="digits_vit", images="DIGITS", count=12):
        options = ["--device", "cpu", "--out", str(tmp_path / "out"), "--count", str(count)]
        options += ["--images", str(images)] if images else []
        code = main(["audit", model, *options, *map(str, arguments)])
        printed, file = capsys.readouterr(), tmp_path / "out/audit.json"
        report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"claims": []}
        return code, {row["id"]: row for row in report["claims"]} | report, printed

    return run


@pytest.fixture
def count_calls(measurements):
    """A measurement of A02 that notes its calls."""
    calls = []
    measurements["A02"] = Measurement(lambda subject: calls.append(1) or Measured(0.5))
    return calls


FAILS = small.raising(KeyError("blocks\nand more"))


def test_a_report_has_figures_intervals_words_and_whether_they_agree(audit, tmp_path):
    code, report, printed = audit()
    assert code == 0
    assert report["states"] == {"measured": 4, "cannot be asked": 0, "failed": 0, "left out": 0}
    row = report["A01"]
    assert report["images"]["size"] == [1, 8, 8] and report["images"]["labels"]
    assert row["low"] < row["figure"] < row["high"] and row["count"] == 12
    assert row["word"] == small.CLAIMS["A01"].judge(row)["word"] and row["untrained"] is None
    assert report["A02"]["word"] == "holds" and report["A02"]["agreement"] == "same side"
    twin = report["A02"]["untrained"]  # ten classes: by chance 0.1
    assert 0.1 < twin["figure"] < 0.3 and twin["word"] == "qualified, in part"
    assert (twin["agreement"], report["A02"]["direction"]) == ("same word", "above")
    assert report["A02"]["printed"].endswith(" powers of ten") and report["A02"]["low"] is None
    assert (report["A03"]["word"], report["A03"]["agreement"]) == ("holds", "other side")
    assert report["proved"] == 1 and sum(report["agreement"].values()) == 3  # A04 is not counted
    assert report["untrained"] == dict.fromkeys(AGREEMENTS, 0) | {"same word": 1}
    said = "1 of 3 measured claims agree with the book, 1 is undecided. The same model untrained "
    assert f"{said}agrees on 1 of 1. " in printed.out and "and not counted: 1." in printed.out
    assert [line.split()[0] for line in printed.err.splitlines()] == ["A01", "A02", "A03", "A04"]
    validation = [sys.executable, "-m", "check_jsonschema", "--schemafile", SCHEMA]
    subprocess.run([*validation, tmp_path / "out/audit.json"], check=True, capture_output=True)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"answers.json", "audit.html", "audit.json", "audit.md"}


def test_what_has_no_figure_says_why_and_has_no_word(audit, measurements):
    refuses = small.raising(NotApplicable("it needs <attention>"))
    nan = lambda subject: Measured(float("nan"))  # noqa: E731
    for name, function in (("A02", refuses), ("A03", FAILS), ("A05", nan)):
        measurements[name] = Measurement(function)
    code, report, printed = audit("--quick")
    assert code == 1 and "Traceback" not in printed.err
    assert report["states"] == {"measured": 1, "cannot be asked": 2, "failed": 1, "left out": 1}
    reasons = {name: (report[name]["state"], report[name]["reason"]) for name in measurements}
    assert reasons["A02"] == ("cannot be asked", "it needs <attention>")
    assert reasons["A03"] == ("failed", "an error in the audit: KeyError: 'blocks\\nand more'")
    assert reasons["A04"] == ("left out", "it takes long, so --quick leaves it out")
    assert reasons["A05"] == ("cannot be asked", "its figure is not a finite number: nan")
    for name in ("A02", "A03", "A04", "A05"):
        assert report[name]["figure"] is report[name]["word"] is report[name]["agreement"] is None


def test_a_failure_is_tried_again_and_an_answer_is_kept(audit, measurements, count_calls):
    measurements["A03"] = Measurement(FAILS)
    assert audit()[0] == 1
    measurements["A03"] = Measurement(lambda subject: Measured(0.5))
    code, report, _ = audit()
    assert code == 0 and report["A03"]["figure"] == 0.5 and len(count_calls) == 1


def test_an_answer_under_other_conditions_is_not_taken(audit, count_calls):
    audit("--claims", "A02")
    changes = [("--seed", "1"), ("--count", "13"), ("--untrained",), ("--beside", "digits_vit")]
    for calls, change in enumerate(changes, 2):
        audit("--claims", "A02", *change)
        assert len(count_calls) == calls, change


def test_a_file_that_has_no_such_answers_is_written_anew(audit, tmp_path, count_calls):
    audit("--claims", "A02")
    answers = tmp_path / "out/answers.json"
    older = answers.read_text().replace(f'"{minivit.__version__}"', '"0.0.1"')
    for calls, content in enumerate(["", "[1]", '{"conditions": {}}', older], 2):
        answers.write_text(content)
        for _ in range(2):
            assert audit("--claims", "A02")[1]["A02"]["figure"] == 0.5
        assert len(count_calls) == calls, content


KILLED = """
import sys, time
from tests.vitlab.claims import small
from vitlab.claims.measuring import Measurement
from vitlab.commands import main
def slow(subject):
    print("asking", flush=True)
    time.sleep(60)
small.install(setattr)["A02"] = Measurement(slow)
main(sys.argv[1:])
"""


def test_a_killed_audit_goes_on_where_it_was(audit, measurements, tmp_path):
    options = ["audit", "digits_vit", "--images", "DIGITS", "--count", "12", "--device", "cpu"]
    command = [sys.executable, "-c", KILLED, *options, "--out", str(tmp_path / "out")]
    around = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=around) as process:
        assert process.stdout.readline() == "asking\n"
        process.send_signal(signal.SIGKILL)
    kept = json.loads((tmp_path / "out/answers.json").read_text())["answers"]
    assert set(kept) == {"A01"}
    measurements["A01"] = Measurement(FAILS)  # it is not asked again
    code, report, _ = audit()
    assert code == 0 and report["A01"]["figure"] == kept["A01"]["figure"]
    assert report["states"]["measured"] == 4


@pytest.fixture
def folder(tmp_path):
    """Digits by class, and one file that is no image."""
    root = tmp_path / "images"
    for name in ("3", "7"):
        (root / name).mkdir(parents=True)
        for i in range(4):
            Image.new("L", (20 + i, 12), 40 * i).save(root / name / f"{i}.png")
    (root / "3" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    (root / "3" / "notes.txt").write_text("no image")
    return root


def test_a_broken_file_is_left_out_and_counted(audit, folder, tmp_path):
    code, report, printed = audit(images=folder)
    assert code == 0 and report["images"]["count"] == 8
    (skipped,) = report["images"]["skipped"]
    assert skipped.startswith("3/broken.png: UnidentifiedImageError")
    assert printed.err.splitlines()[0] == f"left out: {skipped}"
    assert "1 left out as unreadable" in (tmp_path / "out/audit.md").read_text()
    assert report["images"]["labels"] is False
    assert report["images"]["unlabelled"] == "the model's classes are numbers, not names"


def test_labels_are_the_index_of_a_folder_s_name_among_the_model_s_classes(folder, measurements):
    opened = replace(open_any("digits_vit"), classes=["Seven", "crane", "Crane", "Three"])

    def read(seed=0):
        return images_for(opened, str(folder), 20, seed)

    (folder / "3").rename(folder / "three")
    (folder / "7").rename(folder / "seven")
    assert sorted(read().labels.tolist()) == [0] * 4 + [3] * 4
    assert read().sha256 == read().sha256 != read(seed=1).sha256
    (folder / "three").rename(folder / "nine")
    assert read().unlabelled == "the model has no class 'nine'"
    (folder / "nine").rename(folder / "crane")  # a bird and a machine, of ImageNet
    assert read().unlabelled == "the model has several classes named 'crane'"


def test_without_images_they_are_generated_at_the_size_of_the_model(audit):
    code, report, printed = audit(images="", count=6)
    assert code == 0 and report["A03"]["state"] == "cannot be asked"
    assert "no model was made for" in report["images"]["worth"] and not report["images"]["source"]
    assert report["agreement"] is report["untrained"] is None and "claims agree" not in printed.out
    assert "on images that the model is not for" in printed.out
    assert audit(images="SHAPES", count=6)[1]["agreement"] is None  # has no digits
    report = audit("--claims", "A01", "--untrained", model="vit_32px", count=3)[1]
    assert report["images"]["size"] == [3, 32, 32] and report["model"]["untrained"]


MINE = """
import minivit, torch
def unprepared():
    return torch.nn.Linear(3, 2)
def model():
    made = unprepared()
    made.preprocess = minivit.load("digits_vit").preprocess
    return made
"""


def test_bad_input_is_one_sentence_and_changes_nothing(audit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "bad"):
        (tmp_path / name).mkdir()
    (tmp_path / "bad/a.png").write_bytes(b"no")
    (tmp_path / "mine_26.py").write_text(MINE)
    for arguments, message in (
        ("--images nowhere", "expected DIGITS, CIFAR10, SHAPES or a folder: got nowhere"),
        ("--images empty", "expected images in empty: got none"),
        ("--images bad", "expected images in bad: got 1 that cannot be read"),
        ("--count 0", "expected at least one image: got --count 0"),
        ("--beside cifar10_vit", "expected two models that read the same images"),
        ("--check x.json", "a model, or a stored audit after --check: got both"),
        ("--claims A01,B07,r99", "A01, A02, A03, A04: got B07, R99"),
        ("mine_26:model", "mine_26:model that runs on images [1, 8, 8]: got RuntimeError"),
        ("mine_26:unprepared", "has no attribute preprocess"),
    ):
        of_digits = ["digits_vit"] if arguments.startswith("--") else []
        model, *options = of_digits + arguments.split()
        code, _, printed = audit(*options, model=model)
        (line,) = printed.err.splitlines()
        assert code == 2 and line.startswith("error: ") and message in line
        assert not (tmp_path / "out").exists()


def test_random_figures_are_the_same_for_one_seed_and_claims_come_in_the_order_given(audit):
    alone = audit("--claims", "A04")[1]["A04"]["figure"]
    code, report, _ = audit("--claims", "a04,A01,A04", "--batch-size", "3")
    assert code == 0 and [row["id"] for row in report["claims"]] == ["A04", "A01"]
    report = audit("--claims", "A01,A04")[1]
    assert report["A04"]["figure"] == alone
    assert audit("--claims", "A04", "--seed", "5")[1]["A04"]["figure"] != alone
    before = torch.get_rng_state()
    ask("A04", Subject(torch.nn.Identity(), torch.zeros(1, 1, 2, 2)), 3)
    assert torch.equal(before, torch.get_rng_state())


def test_a_claim_measured_again_is_the_same_and_a_forged_one_is_caught(audit, tmp_path, capsys):
    audit()
    path = tmp_path / "out/audit.json"
    arguments = ["audit", "--check", str(path), "--device", "cpu"]
    assert main(arguments) == 0
    assert "measured again, with the same result" in capsys.readouterr().out
    report = json.loads(path.read_text())
    report["claims"][1]["figure"] += 0.1
    report["model"]["weights"] = "0" * 64
    path.write_text(json.dumps(report))
    assert main([*arguments, "--claims", "A01,A02"]) == 1
    weights, figure = capsys.readouterr().err.splitlines()
    assert weights.startswith("error: the weights differ: 0000000000000000 there")
    assert figure.startswith("error: A02 is ") and "expected a difference of at most" in figure


ROW = {"id": "A01", "state": "measured", "figure": "none", "low": None}
NOTHING = [
    "", "[]", '{"format": 1}', '{"format": 2}', '{"format": 2, "states": {"measured": 0}}',
    json.dumps({"format": 2, "states": {"measured": 1}, "claims": [ROW]}),
]  # fmt: skip


def test_what_is_no_stored_audit_is_refused(tmp_path, capsys, measurements):
    for content in NOTHING:
        (tmp_path / "a.json").write_text(content)
        assert main(["audit", "--check", str(tmp_path / "a.json")]) == 2
        assert "expected a stored audit at" in capsys.readouterr().err
