import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
import torch
from PIL import Image

import minivit
from vitlab.commands import main
from vitlab.extras import device_of
from vitlab.training.evaluate import logits_of
from vitlab.training.run import Run

SHORT = ["--epochs", "1", "--threads", "1", "--device", "cpu"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The folder of a short training on digits."""
    folder = tmp_path_factory.mktemp("run") / "digits"
    assert main(["train", "--data", "DIGITS", "--out", str(folder), *SHORT]) == 0
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Red and blue images, in a folder for each."""
    folder = tmp_path_factory.mktemp("pictures")
    for name, colour in ("red", (200, 30, 30)), ("blue", (30, 30, 200)):
        (folder / name).mkdir()
        for i in range(24):
            shade = tuple(value + i for value in colour)
            Image.new("RGB", (40 + i, 50), shade).save(folder / name / f"{i}.png")
    return folder


@pytest.fixture
def grey(tmp_path):
    Image.new("L", (30, 20), 90).save(tmp_path / "a.png")
    return str(tmp_path / "a.png")


def error(capsys, *arguments):
    """The one line that a command fails with."""
    assert main(list(map(str, arguments))) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    return lines[0]


def test_eval_finds_the_scores_of_the_end_in_the_batches_asked_for(digits, capsys, monkeypatch):
    sizes, module = [], "vitlab.commands.evaluate.logits_of"
    monkeypatch.setattr(module, lambda m, s, n: sizes.append(n) or logits_of(m, s, n))
    final = json.loads((digits / "log.jsonl").read_text().splitlines()[-1])
    for part, checkpoint in ("validation", digits), ("test", digits / "model.safetensors"):
        options = ["--data", "DIGITS", "--part", part, "--batch-size", "50"]
        assert main(["eval", str(checkpoint), *options]) == 0
        output = capsys.readouterr().out
        assert output.startswith(f"accuracy {final[part]['accuracy']:.2%}, ")
        assert f"log-likelihood {final[part]['log_likelihood']:.4f}" in output
    assert sizes == [50, 50]
    before = (digits / "state.pt").stat().st_mtime_ns
    assert main(["train", "--data", "DIGITS", "--out", str(digits), "--resume", *SHORT]) == 0
    assert "written to" in capsys.readouterr().out  # a finished training tells its scores again
    assert (digits / "state.pt").stat().st_mtime_ns == before


@pytest.mark.full
def test_a_folder_of_images_is_learnt_scored_and_named(pictures, tmp_path, capsys):
    out = tmp_path / "run"
    options = ["--size", "16", "--steps", "40", "--batch-size", "16", *SHORT[2:]]
    assert main(["train", "--data", str(pictures), "--out", str(out), *options]) == 0
    capsys.readouterr()
    assert main(["eval", str(out), "--data", str(pictures)]) == 0
    assert capsys.readouterr().out.startswith("accuracy 100.00%")
    shown = [str(pictures / "red/3.png"), str(pictures / "blue/5.png")]
    assert main(["predict", *shown, "--model", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0], lines[3]] == shown
    for first, second, best in ((lines[1], lines[2], "red"), (lines[4], lines[5], "blue")):
        (likely, name), (other, _) = first.split(), second.split()
        assert name == best and float(likely[:-1]) > 50
        assert float(likely[:-1]) + float(other[:-1]) == pytest.approx(100)
    config = minivit.load(str(out / "model.safetensors")).config
    assert (config.image_size, config.patch_size) == ((16, 16), (2, 2))


def test_bad_input_is_one_line_and_exit_code_2(digits, pictures, grey, tmp_path, capsys):
    new, bare = tmp_path / "new", tmp_path / "bare.safetensors"
    minivit.save(minivit.create("vit_8px"), bare)
    train = ["train", "--out", new, *SHORT, "--data"]
    ten = r"the classes \['0', .*, '9'\]: got \['blue', 'red'\]"
    unprepared, start = "does not say how images are prepared", ["--from", "digits_vit"]
    predict, look = ["predict", grey, "--model", "digits_vit"], ["look", grey, "--model"]
    for arguments, said in (
        ([*train, "no/such"], "got no/such"),
        ([*train, "DIGITS", "--learning-rate", "-1"], "as learning_rate: got -1.0"),
        (["train", "--data", pictures, "--out", pictures / "red/run"], "--out outside the images"),
        (["eval", digits, "--data", pictures], ten),
        (["eval", bare, "--data", "DIGITS"], unprepared),
        ([*train, "DIGITS", *start, "--channels", "3"], "expected 1 channels: got 3 of DIGITS"),
        ([*predict, "--csv", "a.txt"], "a .csv file in a folder that exists: got a.txt"),
        ([*predict, "--batch-size", "0"], "at least 1: got --batch-size 0"),
        ([*look, "digits_vit", "--block", "9"], "--block 9: expected one of 4 blocks"),
        ([*look, "digits_vit", "--out", "a.txt"], ".png or .svg or .pdf file .*: got a.txt"),
        (["predict", "--model", "digits_vit"], "at least one image: got none"),
        (["predict", "a.png", "--model", "vit_b_32", "--threads", "-1"], "1: got --threads -1$"),
    ):
        assert re.search(said, error(capsys, *arguments)), said
    assert not new.exists()
    advice = error(capsys, *train, "DIGITS", "--learning-rate", 1e8)
    assert "try a learning rate below 1e+08" in advice


def test_auto_takes_the_device_there_is(monkeypatch):
    for cuda, mps, expected in (False, False, "cpu"), (False, True, "mps"), (True, True, "cuda"):
        monkeypatch.setattr("torch.cuda.is_available", lambda answer=cuda: answer)
        monkeypatch.setattr("torch.backends.mps.is_available", lambda answer=mps: answer)
        assert device_of("auto") == torch.device(expected)
        if not cuda:
            with pytest.raises(ValueError, match="there is no cuda device here"):
                device_of("cuda")


def test_too_little_memory_is_one_line_with_advice_and_a_bug_is_a_bug(capsys, monkeypatch):
    arguments, raised = ["eval", "digits_vit", "--data", "DIGITS"], iter(())

    def full(*args):
        raise next(raised)

    monkeypatch.setattr("vitlab.commands.evaluate.logits_of", full)
    texts = "CUDA out of memory", "DefaultCPUAllocator: can't allocate memory", "a bug"
    raised = iter([MemoryError(), *map(RuntimeError, texts)])
    for _ in range(3):
        assert "try a smaller --batch-size" in error(capsys, *arguments)
    with pytest.raises(RuntimeError, match="a bug"):
        main(arguments)


def without(packages, *arguments):
    """Runs the command line where these packages are not installed."""
    code = f"import runpy, sys\nsys.modules.update(dict.fromkeys({packages}))\n"
    code += "runpy.run_module('vitlab', run_name='__main__')"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)


TRAINING = ["tqdm", "filelock", "sklearn", "torchvision", "matplotlib"]
ONE_STEP = "train --data DIGITS --steps 1 --fraction 0.1 --device cpu --threads 1 --out"


@pytest.mark.parametrize(("packages", "command", "code", "text"), [
    (TRAINING, "train --data DIGITS --out", 2, "No module named 'sklearn.*train"),
    (["onnx"], "export digits_vit --out", 2, r"onnx\]"),
    (["scipy"], "audit digits_vit --quick --out", 2, r"audit\]"),
    pytest.param(["matplotlib"], ONE_STEP, 0, r"no figures of the training.*figures\]", marks=pytest.mark.full),
])  # fmt: skip
def test_a_missing_package_is_one_line(tmp_path, packages, command, code, text):
    done = without(packages, *command.split(), str(tmp_path / "a.onnx"))
    progress = r"epoch|1 steps are few"
    lines = [line for line in done.stderr.splitlines() if not re.match(progress, line)]
    assert done.returncode == code and len(lines) == 1, done.stderr
    assert re.search(text, lines[0]) and 'In the repository of minivit: pip install ".' in lines[0]
    names = {path.name for path in tmp_path.glob("a.onnx/*")}
    assert bool(names) == (not code) and not any("png" in name for name in names)
    assert code or {"confusion.csv", "classes.csv"} <= names


@pytest.mark.full
def test_what_needs_no_training_needs_no_package_for_it_and_a_reader_may_stop(grey):
    done = without(TRAINING, "predict", grey, "--model", "digits_vit")
    assert (done.returncode, done.stderr) == (0, "") and len(done.stdout.splitlines()) == 6
    command = f"{sys.executable} -m vitlab predict {'a.png ' * 1500} --model digits_vit | head -1"
    options = {"cwd": os.path.dirname(grey), "env": os.environ | {"PYTHONPATH": os.getcwd()}}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, **options)
    assert (done.stdout, done.stderr) == ("a.png\n", "")


def test_an_interrupt_says_how_to_go_on(pictures, tmp_path, capsys, monkeypatch):
    advance = Run.advance

    def interrupting(run):
        if run.step == 3:
            signal.raise_signal(signal.SIGINT)
        return advance(run)

    monkeypatch.setattr(Run, "advance", interrupting)
    common = ["train", "--data", str(pictures), "--steps", "6", *SHORT[2:]]
    start, out = ["--from", "digits_vit"], ["--out", str(tmp_path / "my run")]
    assert main([*common, *start, *out]) == 128 + signal.SIGINT
    again = shlex.join(["python", "-m", "vitlab", *common, *start, *out, "--resume"])
    text = f"stopped after step 4 of 6, which is saved. To continue:\n    {again}\n"
    assert capsys.readouterr().err.endswith(text)
    other = [*common, "--from", "digits_mixer", *out, "--resume"]
    assert "the model's start is 'digits_vit' there" in error(capsys, *other)
