import dataclasses
import json
import os
import platform
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
from vitlab.training.defaults import device_of, recipe_for
from vitlab.training.evaluate import logits_of
from vitlab.training.recipe import Recipe
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


def error(capsys, *arguments):
    """The one line that a command fails with."""
    assert main(list(map(str, arguments))) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    return lines[0]


def test_a_short_training_writes_all_it_should_and_shows_a_line_an_epoch(tmp_path):
    command = [sys.executable, "-m", "vitlab", "train", "--data", "DIGITS", "--steps", "25"]
    command += ["--threads", "1", "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line.split("  ")[0] for line in done.stderr.splitlines()] == ["epoch 1/2", "epoch 2/2"]
    assert "\r" not in done.stderr  # no bar where there is no terminal
    validation, test, end = done.stdout.splitlines()
    assert validation.startswith("validation  accuracy ") and test.endswith("359 images")
    assert end.startswith("25 steps in ") and end.endswith(f"written to {tmp_path / 'run'}")
    card = (tmp_path / "run/card.md").read_text()
    assert (
        f"    python -m vitlab train --data DIGITS --steps 25 --threads 1 --out {tmp_path}/run\n"
        in card
    )


def test_eval_finds_the_scores_of_the_end(digits, capsys):
    final = json.loads((digits / "log.jsonl").read_text().splitlines()[-1])
    for part in ("validation", "test"):
        for checkpoint in (digits, digits / "model.safetensors"):
            assert main(["eval", str(checkpoint), "--data", "DIGITS", "--part", part]) == 0
            said = capsys.readouterr().out
            assert said.startswith(f"accuracy {final[part]['accuracy']:.2%}, ")
            assert f"log-likelihood {final[part]['log_likelihood']:.4f}" in said


def test_eval_takes_the_images_of_a_source_as_they_were_trained_on(tmp_path, capsys):
    options = ["--size", "16", "--channels", "3", "--steps", "30", *SHORT[2:]]
    assert main(["train", "--data", "DIGITS", "--out", str(tmp_path), *options]) == 0
    trained = capsys.readouterr().out.splitlines()[1]
    assert main(["eval", str(tmp_path), "--data", "DIGITS"]) == 0
    assert trained == f"test        {capsys.readouterr().out.splitlines()[0]}"


def test_a_training_among_the_images_is_refused_before_it_is_one_of_them(
    pictures, capsys, monkeypatch
):
    for out in (pictures / "runs", pictures / "red" / "run", pictures):
        said = error(capsys, "train", "--data", pictures, "--out", out, *SHORT)
        assert "give --out a folder outside the images" in said
    monkeypatch.chdir(pictures)
    assert "outside the images" in error(capsys, "train", "--data", ".", *SHORT)
    assert {path.name for path in pictures.iterdir()} == {"red", "blue"}


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
        (share, name), (other, _) = first.split(), second.split()
        assert name == best
        assert float(share[:-1]) > 50 and float(share[:-1]) + float(other[:-1]) == pytest.approx(
            100
        )
    model = minivit.load(str(out / "model.safetensors"))
    assert (model.config.image_size, model.config.patch_size) == ((16, 16), (2, 2))


def test_predict_gives_as_many_classes_as_asked_for_most_likely_first(digits, tmp_path, capsys):
    Image.new("L", (30, 20), 90).save(tmp_path / "a.png")
    for top, count in ((None, 5), (3, 3), (50, 10)):
        options = [] if top is None else ["--top", str(top)]
        assert main(["predict", str(tmp_path / "a.png"), "--model", str(digits), *options]) == 0
        shares = [float(line.split("%")[0]) for line in capsys.readouterr().out.splitlines()[1:]]
        assert len(shares) == count and shares == sorted(shares, reverse=True)
        assert sum(shares) <= 100.05


def test_a_finished_training_says_again_what_it_came_to(digits, capsys):
    before = (digits / "state.pt").stat().st_mtime_ns
    assert main(["train", "--data", "DIGITS", "--out", str(digits), "--resume", *SHORT]) == 0
    assert "written to" in capsys.readouterr().out
    assert (digits / "state.pt").stat().st_mtime_ns == before


def test_models_lists_them(capsys):
    assert main(["models"]) == 0
    assert capsys.readouterr().out == f"{minivit.models()}\n"


def shown(capsys):
    """What --help of `train` shows, without its boxes and breaks of lines."""
    with pytest.raises(SystemExit) as end:
        main(["train", "--help"])
    assert end.value.code == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_help_says_the_defaults(capsys):
    said = shown(capsys)
    assert "--epochs FLOAT Passes over the training images. (default: 30 for DIGITS, 20 for" in said
    assert (
        "--clip FLOAT Largest norm of the gradient; a longer one is scaled down. (default: 1.0)"
        in said
    )


def test_bad_input_is_one_line_and_exit_code_2(digits, pictures, tmp_path, capsys):
    train = ["train", "--out", tmp_path / "new", *SHORT]
    assert "got no/such" in error(capsys, *train, "--data", "no/such")
    said = error(capsys, *train, "--data", "DIGITS", "--model", "vit_9px")
    assert "no model 'vit_9px': did you mean vit_8px" in said
    said = error(capsys, *train, "--data", "DIGITS", "--learning-rate", "-1")
    assert "learning_rate must be above 0: got -1.0" in said
    assert "fraction" in error(capsys, *train, "--data", "DIGITS", "--fraction", "2")
    assert not (tmp_path / "new").exists()
    said = error(capsys, "train", "--data", "DIGITS", "--out", digits, *SHORT)
    assert "already holds state.pt and model.safetensors" in said
    said = error(
        capsys, "train", "--data", "DIGITS", "--out", digits, "--resume", *SHORT, "--seed", "5"
    )
    assert "the recipe's seed is 0 there, 5 here" in said
    assert "16 to 128 pixels each way" in error(capsys, "eval", digits, "--data", "SHAPES")
    said = error(capsys, "eval", digits, "--data", pictures)
    assert (
        "the classes of the model are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9" in said and "blue, red" in said
    )
    assert "no model 'gone'" in error(capsys, "eval", "gone", "--data", "DIGITS")
    card = digits / "card.md"
    assert f"expected an image at {card}" in error(capsys, "predict", card, "--model", digits)
    (tmp_path / "a.safetensors").write_bytes(b"half")
    said = error(capsys, "eval", tmp_path / "a.safetensors", "--data", "DIGITS")
    assert "expected a whole checkpoint" in said
    said = error(capsys, *train, "--data", "DIGITS", "--learning-rate", "1e30")
    assert "try a learning rate below 1e+30" in said


def test_an_unknown_option_is_refused_with_code_2(capsys):
    with pytest.raises(SystemExit) as end:
        main(["train", "--data", "DIGITS", "--epoks", "3"])
    assert end.value.code == 2 and "--epoks" in capsys.readouterr().err


def test_an_interrupt_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    advance = Run.advance

    def interrupted(run):
        if run.step == 3:
            signal.raise_signal(signal.SIGINT)
        return advance(run)

    monkeypatch.setattr(Run, "advance", interrupted)
    arguments = ["train", "--data", "DIGITS", "--out", str(tmp_path / "my run"), *SHORT]
    assert main(arguments) == 128 + signal.SIGINT
    said = capsys.readouterr().err
    again = (
        f"python -m vitlab train --data DIGITS --out '{tmp_path}/my run' {' '.join(SHORT)} --resume"
    )
    assert said == f"stopped after step 4 of 19, which is saved. To continue:\n    {again}\n"
    monkeypatch.undo()
    assert main(shlex.split(again)[3:]) == 0


def test_auto_takes_the_device_there_is(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    assert device_of("auto") == torch.device("cpu")
    with pytest.raises(ValueError, match="there is no cuda device here"):
        device_of("cuda")
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    assert device_of("auto") == torch.device("mps")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert device_of("auto") == torch.device("cuda")


@pytest.mark.parametrize("options", [["--threads", "-1"], ["--top", "0"], ["--top", "-1"]])
def test_a_count_below_one_is_refused_with_code_2(options, capsys):
    said = error(capsys, "predict", "a.png", "--model", "vit_b_32", *options)
    assert said.endswith(f"expected a whole number, at least 1: got {' '.join(options)}")


def test_a_model_that_does_not_say_how_images_are_prepared_is_one_line(tmp_path, capsys):
    path = tmp_path / "bare.safetensors"
    minivit.save(minivit.create("vit_8px"), path)
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    for command in (
        ["eval", path, "--data", "DIGITS"],
        ["predict", tmp_path / "a.png", "--model", path],
    ):
        assert "does not say how its images are prepared" in error(capsys, *command)


@pytest.mark.parametrize(
    "raised",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_too_little_memory_is_one_line_with_advice(digits, capsys, monkeypatch, raised):
    def full(*args):
        raise raised

    monkeypatch.setattr("vitlab.commands.evaluate.logits_of", full)
    assert "try a smaller --batch-size" in error(capsys, "eval", digits, "--data", "DIGITS")


def test_another_runtime_error_is_not_called_one_of_memory(digits, monkeypatch):
    def broken(*args):
        raise RuntimeError("a bug")

    monkeypatch.setattr("vitlab.commands.evaluate.logits_of", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["eval", str(digits), "--data", "DIGITS"])


def test_eval_takes_the_batches_asked_for(digits, capsys, monkeypatch):
    sizes = []
    monkeypatch.setattr(
        "vitlab.commands.evaluate.logits_of",
        lambda m, s, n: sizes.append(n) or logits_of(m, s, n),
    )
    assert main(["eval", str(digits), "--data", "DIGITS", "--batch-size", "50"]) == 0
    assert sizes == [50]


def test_a_package_that_is_missing_is_one_line_with_what_to_install(tmp_path):
    options = ["train", "--data", "DIGITS", "--out", str(tmp_path / "run")]
    done = without_train(*options)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "error: No module named 'sklearn" in done.stderr
    assert 'In the repository of minivit: pip install ".[train]"' in done.stderr
    assert not (tmp_path / "run").exists()


def without_train(*arguments):
    """Runs the command line where nothing of the extra `train` is installed, nor torchvision."""
    code = "import runpy, sys\n"
    code += "for name in ('tqdm', 'filelock', 'sklearn', 'torchvision', 'matplotlib'):\n"
    code += "    sys.modules[name] = None\n"
    code += "runpy.run_module('minivit', run_name='__main__')"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)


def test_what_needs_no_training_needs_no_package_for_it(tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    done = without_train("predict", str(tmp_path / "a.png"), "--model", "digits_vit")
    assert (done.returncode, done.stderr) == (0, "") and len(done.stdout.splitlines()) == 6


def test_predict_goes_on_past_an_image_that_it_cannot_read(digits, tmp_path, capsys):
    for name in ("a.png", "c.png"):
        Image.new("L", (8, 8)).save(tmp_path / name)
    (tmp_path / "b.png").write_bytes(b"broken")
    pictures = [str(tmp_path / name) for name in ("a.png", "b.png", "c.png")]
    assert main(["predict", *pictures, "--model", str(digits), "--top", "1"]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines()[::2] == [pictures[0], pictures[2]]
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith(f"error: expected an image at {pictures[1]}; reading it failed: ")


def test_a_reader_that_has_read_enough_is_no_error(tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    command = f"{sys.executable} -m minivit predict {'a.png ' * 1500} --model digits_vit | head -1"
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("a.png\n", "")


def test_every_default_that_the_help_states_is_what_a_run_with_no_option_uses(capsys):
    said = shown(capsys)
    for field in dataclasses.fields(Recipe):
        if field.name != "precision":  # that depends on the machine
            option = f" --{field.name.replace('_', '-')}"
            text = re.split(rf"{option}[ ,]", said)[-1]
            default = re.match(r".*?\(default: (.*?)\)", text)[1]
            for source in ("DIGITS", "CIFAR10", "SHAPES", "FOLDER"):
                value = str(getattr(recipe_for(source, torch.device("cpu")), field.name))
                assert default == value or f"{value} for {source}" in default, (option, default)


def test_a_training_that_does_not_use_the_weights_that_there_are_says_so(tmp_path, capsys):
    command = ["train", "--data", "DIGITS", "--fraction", "0.1", "--steps", "1", *SHORT[2:]]
    assert main([*command, "--model", "digits_mixer", "--out", str(tmp_path / "a")]) == 0
    said = "it starts untrained: to use the existing weights, give --from digits_mixer"
    assert capsys.readouterr().err.splitlines()[0] == said
    assert main([*command, "--model", "mixer_8px", "--out", str(tmp_path / "b")]) == 0
    assert "untrained" not in capsys.readouterr().err


def test_the_version_is_said(capsys):
    assert main(["--version"]) == 0
    others = f"Python {platform.python_version()}, torch {torch.__version__}"
    assert capsys.readouterr().out == f"minivit {minivit.__version__} ({others})\n"


def test_a_model_and_trained_weights_do_not_go_together(capsys):
    with pytest.raises(SystemExit) as end:
        main(["train", "--data", "DIGITS", "--from", "digits_vit", "--model", "vit_8px"])
    assert end.value.code == 2
    assert "--from and --model are not allowed together" in capsys.readouterr().err


def test_predict_wants_an_image(capsys):
    assert "at least one image: got none" in error(capsys, "predict", "--model", "digits_vit")


def test_a_training_goes_on_from_trained_weights_with_a_head_for_the_classes(
    pictures, tmp_path, capsys
):
    common = ["--from", "digits_vit", "--learning-rate", "1e-6", "--steps", "1", *SHORT[2:]]
    assert main(["train", "--data", "DIGITS", "--out", str(tmp_path / "a"), *common]) == 0
    said = capsys.readouterr()
    assert "untrained" not in said.err and float(said.out.split()[2].rstrip("%,")) > 90
    assert main(["train", "--data", str(pictures), "--out", str(tmp_path / "b"), *common]) == 0
    model, body = minivit.load(tmp_path / "b"), minivit.load("digits_vit")
    assert model.classes == ["blue", "red"] and model.config.classes == 2
    assert model.licence == "none stated; weights of digits_vit: MIT"
    weights = [m.blocks[2].attention.qkv.weight for m in (model, body)]
    assert torch.allclose(*weights, atol=1e-4)


def test_a_training_from_trained_weights_is_resumed_from_the_same_alone(
    pictures, tmp_path, capsys, monkeypatch
):
    advance = Run.advance

    def interrupted(run):
        if run.step == 3:
            signal.raise_signal(signal.SIGINT)
        return advance(run)

    common = ["train", "--data", str(pictures), "--steps", "6", *SHORT[2:]]
    start, other = ["--from", "digits_vit"], ["--from", "digits_mixer"]
    assert main([*common, *start, "--out", str(tmp_path / "whole")]) == 0
    monkeypatch.setattr(Run, "advance", interrupted)
    resumed = [*common, "--out", str(tmp_path / "run"), "--resume"]
    assert main([*resumed, *start]) == 128 + signal.SIGINT
    monkeypatch.undo()
    capsys.readouterr()
    assert "the model's start is 'digits_vit' there" in error(capsys, *resumed, *other)
    assert main([*resumed, *start]) == 0
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "run")]
    assert files[0].read_bytes() == files[1].read_bytes()
