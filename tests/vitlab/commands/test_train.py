"""`minivit train`: from trained models of any library, frozen parts, what it draws."""

import json
from functools import partial

import pytest
import torch
from PIL import Image

import minivit
import vitlab
from minivit.preprocessing import Preprocess
from tests.foreign import huggingfaces
from tests.vitlab.test_converted import HEAD, torchvisions
from vitlab.commands import main
from vitlab.convert.loaded_model import LoadedModel

STEP = ["--steps", "1", "--learning-rate", "1e-7", "--average", "0", "--fraction", "0.1"]
DIGITS = ["train", "--data", "DIGITS", "--threads", "1", "--device", "cpu", *STEP]


FOREIGN = {
    "hf": (partial(huggingfaces, HEAD, torch.float32), vitlab.from_huggingface),
    "torchvision": (partial(torchvisions, image_size=16), minivit.from_torchvision),
}


@pytest.mark.parametrize("library", FOREIGN)
def test_a_training_begins_with_a_model_of_another_library(tmp_path, monkeypatch, library):
    make, convert = FOREIGN[library]
    source, size = make(), Preprocess(16, 16, mean=(0.5,) * 3, std=(0.5,) * 3)
    opened = LoadedModel(source, size, None, f"{library}:some/name", "Apache-2.0", None)
    monkeypatch.setattr("vitlab.commands.command.open_any", lambda name: opened)
    monkeypatch.chdir(tmp_path)
    assert main([*DIGITS, "--from", f"{library}:some/name", "--freeze", "backbone"]) == 0
    (out,) = (tmp_path / "runs").iterdir()
    model = minivit.load(out)
    expected = convert(source)
    images = torch.randn(2, 3, 16, 16)
    pooled = [m.norm(m.tokens(images)) for m in (model, expected)]
    assert torch.allclose(*pooled, atol=1e-6)
    assert model.config.classes == 10 and model.preprocess.mean == (0.5,) * 3
    assert model.licence.endswith(f"weights of {library}:some/name: Apache-2.0")


def test_the_folder_holds_figures_of_the_training_drawn_again(tmp_path, capsys):
    arguments = [*DIGITS, "--out", str(tmp_path / "run")]
    assert main(arguments) == 0
    assert "`--from cifar10_vit` begins with trained ones" in capsys.readouterr().err
    figures = [tmp_path / "run" / name for name in ("curve.png", "curve.svg", "confusion.png")]
    assert Image.open(figures[0]).width > 500 and Image.open(figures[2]).width > 500
    assert "</svg>" in figures[1].read_text()
    figures[2].unlink()
    assert main([*arguments, "--resume"]) == 0
    assert figures[2].exists()


def test_eval_says_the_accuracy_of_each_class_and_writes_the_matrix(tmp_path, capsys):
    eval_ = ["eval", "digits_vit", "--data", "DIGITS", "--confusion"]
    assert main([*eval_, str(tmp_path / "a.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    assert len(lines) == 12 and lines[1].split()[:4] == ["class", "images", "right", "accuracy"]
    for i, (line, row) in enumerate(zip(lines[2:], rows, strict=True)):
        counts = list(map(int, row[1:]))
        assert line.split()[:3] == [str(i), str(sum(counts)), str(counts[i])]
        assert line.split()[3] == f"{counts[i] / sum(counts):.4f}"
    assert main([*eval_, str(tmp_path / "a.svg")]) == 0
    assert "</svg>" in (tmp_path / "a.svg").read_text()


def test_a_trained_model_teaches_another(tmp_path):
    def loss(name, *options):
        arguments = ["train", "--data", "DIGITS", "--steps", "3", "--threads", "1", *options]
        assert main([*arguments, "--out", str(tmp_path / name)]) == 0
        return json.loads((tmp_path / name / "log.jsonl").read_text().splitlines()[0])["loss"]

    assert loss("alone") != loss("taught", "--teacher", "digits_mixer")
    assert "--teacher digits_mixer" in (tmp_path / "taught" / "card.md").read_text()
