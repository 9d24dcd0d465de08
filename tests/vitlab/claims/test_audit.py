"""The command, from images to a report, with small probes."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
import torch
from PIL import Image

import minivit
from tests.vitlab.claims import small
from vitlab.claims import images
from vitlab.claims.probe import CannotAsk, Measured, Probe, Subject
from vitlab.claims.report import SCHEMA
from vitlab.claims.run import ask
from vitlab.claims.stored import read
from vitlab.commands import audit as command
from vitlab.commands import main

DIGITS = cache(images.load_data)


@pytest.fixture
def probes(monkeypatch):
    """The small probes, by claim; what is put in and taken out is what the command finds."""
    monkeypatch.setattr(images, "load_data", DIGITS)
    monkeypatch.setattr(command, "looks", lambda *_: ([], "drawn in another test"))
    return small.install(monkeypatch.setattr)


@pytest.fixture
def audit(probes, tmp_path, capsys):
    """Runs the command on digits_vit; gives its exit code, the claims of its report, its words."""

    def run(*arguments, model="digits_vit", images="DIGITS", count=12):
        options = ["--device", "cpu", "--out", str(tmp_path / "out"), "--count", str(count)]
        options += ["--images", str(images)] if images else []
        code = main(["audit", model, *options, *map(str, arguments)])
        said, file = capsys.readouterr(), tmp_path / "out/audit.json"
        report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"claims": []}
        return code, {row["id"]: row for row in report["claims"]} | report, said

    return run


def error(said):
    (line,) = said.err.splitlines()
    return line.removeprefix("error: ")


def valid(path):
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", SCHEMA, path]
    return subprocess.run(command, capture_output=True).returncode == 0


def test_a_report_has_figures_intervals_words_and_whether_they_agree(audit, tmp_path):
    code, found, said = audit()
    assert code == 0 and found["states"] == {
        "measured": 4, "cannot be asked": 0, "failed": 0, "left out": 0
    }  # fmt: skip
    row = found["A01"]
    assert found["images"]["size"] == [1, 8, 8] and found["images"]["labels"]
    assert row["low"] < row["figure"] < row["high"] and row["count"] == 12
    assert row["word"] == small.CLAIMS["A01"].decide(row["figure"], row["high"] - row["figure"])
    assert found["A02"]["word"] == "holds" and found["A02"]["agreement"] == "same side"
    assert found["A02"]["printed"].endswith(" powers of ten") and found["A02"]["low"] is None
    assert (found["A03"]["word"], found["A03"]["agreement"]) == ("holds", "other side")
    assert (
        said.out.startswith(f"{2 + (row['agreement'] != 'undecided')} of 4") or "of 4" in said.out
    )
    assert [line.split()[0] for line in said.err.splitlines()] == ["A01", "A02", "A03", "A04"]
    assert valid(tmp_path / "out/audit.json")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"answers", "audit.html", "audit.json", "audit.md"}


def test_what_cannot_be_asked_fails_or_is_left_out_says_why_and_has_no_number(audit, probes):
    def refuse(subject):
        raise CannotAsk("it needs <attention>")

    for name, measure in (("A02", refuse), ("A03", small.broken), ("A05", small.nan)):
        probes[name] = Probe(name, "Does it?", measure)
    code, found, said = audit("--quick")
    assert code == 1 and "Traceback" not in said.err
    assert found["states"] == {"measured": 1, "cannot be asked": 2, "failed": 1, "left out": 1}
    said = {name: (found[name]["state"], found[name]["reason"]) for name in probes}
    assert said["A02"] == ("cannot be asked", "it needs <attention>")
    assert said["A03"] == ("failed", "an error in the audit: KeyError: 'blocks\\nand more'")
    assert said["A04"] == ("left out", "it takes long, so --quick leaves it out")
    assert said["A05"] == ("cannot be asked", "its figure is not a finite number: nan")
    for name in ("A02", "A03", "A04", "A05"):
        assert found[name]["figure"] is found[name]["word"] is found[name]["agreement"] is None


def test_a_failure_is_tried_again_and_an_answer_is_kept(audit, probes):
    asked = []

    def count(subject):
        asked.append(1)
        return Measured(0.5)

    probes["A02"], probes["A03"] = (
        Probe("A02", "?", count), Probe("A03", "?", small.broken)
    )  # fmt: skip
    assert audit()[0] == 1
    probes["A03"] = Probe("A03", "?", lambda subject: Measured(0.5))
    code, found, _ = audit()
    assert code == 0 and found["A03"]["figure"] == 0.5 and len(asked) == 1


@pytest.mark.parametrize(
    "change",
    [("--seed", "1"), ("--count", "13"), ("--untrained",), ("--beside", "digits_vit")],
)
def test_an_answer_under_other_conditions_is_not_taken(audit, probes, change):
    asked = []
    probes["A02"] = Probe("A02", "?", lambda subject: asked.append(1) or Measured(0.5))
    audit("--claims", "A02")
    audit("--claims", "A02", *change)
    assert len(asked) == 2


def test_an_answer_of_other_code_is_not_taken(audit, probes, monkeypatch):
    asked = []
    probes["A02"] = Probe("A02", "?", lambda subject: asked.append(1) or Measured(0.5))
    audit("--claims", "A02")
    monkeypatch.setattr("vitlab.commands.audit.code", lambda: "0" * 64)
    audit("--claims", "A02")
    assert len(asked) == 2


@pytest.mark.parametrize("damage", ["changed", "cut", "emptied", "another", "list"])
def test_a_kept_answer_that_is_damaged_or_forged_is_asked_again(audit, tmp_path, damage):
    before = audit()[1]["A02"]["figure"]
    path = tmp_path / "out/answers/A02.json"
    text = path.read_text()
    content = json.loads(text)
    content["answer"]["figure"] = 0.123
    damaged = {
        "changed": json.dumps(content),
        "cut": text[:-40],
        "emptied": "",
        "another": (tmp_path / "out/answers/A01.json").read_text(),
        "list": "[1]",
    }
    path.write_text(damaged[damage])
    code, found, said = audit()
    assert code == 0 and found["A02"]["figure"] == before
    assert "A02.json is damaged" in said.err and "asked again" in said.err
    assert "damaged" not in audit()[2].err


KILLED = """
import sys, time
sys.path.insert(0, {root!r})
from tests.vitlab.claims import small
from vitlab.claims.probe import Measured, Probe
probes = small.install(setattr)
def slow(subject):
    print("asking", flush=True)
    time.sleep(60)
probes["A02"] = Probe("A02", "?", slow)
from vitlab.commands import main
from vitlab.commands import audit as command
main(sys.argv[1:])
"""


@pytest.mark.full
def test_a_killed_audit_goes_on_where_it_was(audit, probes, tmp_path):
    code = KILLED.format(root=str(small.ROOT))
    options = ["audit", "digits_vit", "--images", "DIGITS", "--count", "12", "--device", "cpu"]
    command = [sys.executable, "-c", code, *options, "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "asking\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert {path.name for path in (tmp_path / "out/answers").iterdir()} == {"A01.json"}
    kept = json.loads((tmp_path / "out/answers/A01.json").read_text())["answer"]["figure"]
    probes["A01"] = replace(probes["A01"], measure=small.broken)  # it is not asked again
    code, found, _ = audit()
    assert code == 0 and found["A01"]["figure"] == kept and found["states"]["measured"] == 4


def test_an_interrupt_says_how_to_go_on(audit, probes):
    def interrupted(subject):
        raise KeyboardInterrupt

    probes["A02"] = Probe("A02", "?", interrupted)
    code, found, said = audit()
    assert code == 130 and not found["claims"]
    assert said.err.endswith("Answers so far are kept: the same command continues.\n")


def test_a_claim_that_has_no_probe_is_named_with_those_that_have_one(audit):
    code, _, said = audit("--claims", "A01, B07,r99")
    assert code == 2
    assert error(said) == (
        "expected claims with a probe, among A01, A02, A03, A04: got B07, R99"
    )  # fmt: skip
    code, found, _ = audit("--claims", "a03,A01,A03")
    assert code == 0 and [row["id"] for row in found["claims"]] == ["A03", "A01"]


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
    code, found, said = audit(images=folder)
    assert code == 0 and found["images"]["count"] == 8
    (skipped,) = found["images"]["skipped"]
    assert skipped.startswith("3/broken.png: UnidentifiedImageError")
    assert said.err.splitlines()[0] == f"left out: {skipped}"
    assert "1 left out as unreadable" in (tmp_path / "out/audit.md").read_text()
    assert found["images"]["labels"] is False
    assert found["images"]["unlabelled"] == "the model's classes are numbers, not names"


def test_labels_are_the_index_of_a_folder_s_name_among_the_model_s_classes(folder, probes):
    from vitlab.claims.images import images_for
    from vitlab.convert.open_model import open_any

    opened = replace(open_any("digits_vit"), classes=["Seven", "Eight", "Three"])
    (folder / "3").rename(folder / "three")
    (folder / "7").rename(folder / "seven")
    found = images_for(opened, str(folder), 20, 0)
    assert sorted(found.labels.tolist()) == [0] * 4 + [2] * 4
    again = images_for(opened, str(folder), 20, 0)
    assert found.sha256 == again.sha256 != images_for(opened, str(folder), 20, 1).sha256
    Image.new("L", (9, 9)).save(folder / "loose.png")
    assert (
        images_for(opened, str(folder), 20, 0).unlabelled
        == "some images are not in a class's folder"
    )
    (folder / "loose.png").unlink()
    (folder / "three").rename(folder / "nine")
    assert images_for(opened, str(folder), 20, 0).unlabelled == "the model has no class 'nine'"
    (folder / "nine").rename(folder / "crane")  # a bird and a machine, of ImageNet
    opened = replace(opened, classes=["Seven", "crane", "Crane"])
    why = images_for(opened, str(folder), 20, 0).unlabelled
    assert why == "the model has several classes named 'crane'"


def test_without_labels_a_claim_that_needs_them_is_not_asked(audit):
    code, found, _ = audit(images="", count=6)
    assert code == 0 and found["A03"]["state"] == "cannot be asked"
    assert "no model was made for" in found["images"]["worth"] and not found["images"]["source"]


def test_digits_are_resampled_to_the_size_of_the_model(audit):
    found = audit("--claims", "A01", "--untrained", model="vit_32px", count=3)[1]
    assert found["images"]["size"] == [3, 32, 32] and found["model"]["untrained"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--images", "nowhere"], "expected DIGITS, CIFAR10, SHAPES or a folder: got nowhere"),
        (["--count", "0"], "expected at least one image: got --count 0"),
        (["--batch-size", "0"], "expected a whole number, at least 1: got --batch-size 0"),
        (["--beside", "cifar10_vit"], "expected two models that read the same images"),
        (["--check", "x.json"], "expected a model, or a stored audit after --check, and not both"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(audit, tmp_path, arguments, said):
    code, _, out = audit(*arguments)
    assert code == 2 and said in error(out) and not (tmp_path / "out").exists()


def test_a_folder_without_an_image_that_can_be_read_is_refused(audit, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "expected images in" in error(audit(images=tmp_path / "empty")[2])
    (tmp_path / "empty/a.png").write_bytes(b"no")
    assert "1 that cannot be read" in error(audit(images=tmp_path / "empty")[2])


def test_a_model_of_nan_has_no_figure_that_depends_on_its_answers(audit, tmp_path):
    model = minivit.load("digits_vit")
    model.head.weight.data.fill_(1e38)
    minivit.save(model, tmp_path / "huge.safetensors")
    code, found, _ = audit(model=str(tmp_path / "huge.safetensors"))
    assert code == 0 and found["A01"]["state"] == "measured"
    assert found["A02"]["state"] == "cannot be asked"
    assert found["A02"]["reason"] == "its figure is not a finite number: nan"


def test_a_model_that_does_not_run_on_the_images_is_refused(audit, tmp_path, monkeypatch):
    (tmp_path / "mine_26.py").write_text(
        "import minivit, torch\n"
        "def model():\n"
        "    made = torch.nn.Linear(3, 2)\n"
        "    made.preprocess = minivit.load('digits_vit').preprocess\n"
        "    return made\n"
        "def unprepared():\n"
        "    return torch.nn.Linear(3, 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    said = error(audit(model="mine_26:model")[2])
    assert said.startswith("mine_26:model does not run on images [1, 8, 8]: RuntimeError")
    said = error(audit(model="mine_26:unprepared")[2])
    assert "has no attribute preprocess" in said


def test_random_probes_give_the_same_figure_in_any_order_and_for_one_seed(audit):
    alone = audit("--claims", "A04")[1]["A04"]["figure"]
    assert audit("--claims", "A01,A04", "--batch-size", "3")[1]["A04"]["figure"] == alone
    assert audit("--claims", "A04", "--seed", "5")[1]["A04"]["figure"] != alone


def test_asking_leaves_the_random_numbers_of_the_caller_alone():
    before = torch.get_rng_state()
    subject = Subject(torch.nn.Identity(), torch.zeros(1, 1, 2, 2))
    assert (
        ask(small.PROBES["A04"], subject, 3).figure == ask(small.PROBES["A04"], subject, 3).figure
    )
    assert torch.equal(before, torch.get_rng_state())


def test_memory_that_does_not_suffice_is_told_apart_and_tried_again():
    def hungry(subject):
        raise CannotAsk("CUDA out of memory. Tried to allocate 3 GiB")

    subject = Subject(torch.nn.Identity(), torch.zeros(1, 1, 2, 2))
    found = ask(Probe("A01", "?", hungry), subject, 0)
    assert (found.state, found.reason) == ("failed", "out of memory: try a smaller --batch-size")


def test_a_claim_measured_again_is_the_same_and_a_forged_one_is_found(audit, tmp_path, capsys):
    audit()
    path = tmp_path / "out/audit.json"
    arguments = ["audit", "--check", str(path), "--device", "cpu"]
    assert main(arguments) == 0
    assert "measured again, with the same result" in capsys.readouterr().out
    report = json.loads(path.read_text())
    row = next(row for row in report["claims"] if row["id"] == "A02")
    row["figure"] += 0.1
    path.write_text(json.dumps(report))
    assert main([*arguments, "--claims", "A01,A02"]) == 1
    (line,) = [said for said in capsys.readouterr().err.splitlines() if "error" in said]
    assert line.startswith("error: A02 is ") and "expected a difference of at most" in line
    report["model"]["weights"] = "0" * 64
    path.write_text(json.dumps(report))
    assert main([*arguments, "--claims", "A01"]) == 1
    assert "the weights differ: 0000000000000000 there" in capsys.readouterr().err


def test_a_stored_audit_with_a_text_for_a_figure_is_refused(audit, tmp_path):
    audit()
    path = tmp_path / "out/audit.json"
    report = json.loads(path.read_text())
    report["claims"][0]["figure"] = "0.5"
    path.write_text(json.dumps(report))
    with pytest.raises(ValueError, match="its figure is '0.5'"):
        read(path)


@pytest.mark.parametrize("content", ["", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "states": {"measured": 0}}'])  # fmt: skip
def test_what_is_no_stored_audit_is_refused(tmp_path, capsys, probes, content):
    (tmp_path / "a.json").write_text(content)
    assert main(["audit", "--check", str(tmp_path / "a.json")]) == 2
    assert "expected a stored audit at" in capsys.readouterr().err
