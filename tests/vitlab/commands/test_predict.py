"""`minivit predict`: folders, tables, broken images."""

import csv
import json

import pytest
import torch
from PIL import Image

import minivit
from vitlab.commands import main
from vitlab.data.pictures import open_picture


@pytest.fixture
def album(tmp_path):
    """Five images in a folder and one inside, a text and a hidden one."""
    folder = tmp_path / "album"
    (folder / "a folder").mkdir(parents=True)
    for i, name in enumerate(["c.png", "a.jpg", "b.png", "d.bmp", "a folder/a.png"]):
        Image.new("L", (20 + i, 16), 40 * i + 30).save(folder / name)
    (folder / "notes.txt").write_text("no image")
    (folder / ".hidden.png").write_text("no image")
    return folder


ORDER = ["a.jpg", "b.png", "c.png", "d.bmp", "a folder/a.png"]


def predict(*arguments):
    return main(["predict", *map(str, arguments), "--model", "digits_vit"])


def test_a_table_holds_what_the_model_says_of_each_image(album, tmp_path, capsys):
    files = tmp_path / "out.csv", tmp_path / "out.json"
    assert predict(album, "--csv", files[0], "--json", files[1], "--top", 3, "--batch-size", 2) == 0
    assert capsys.readouterr() == ("", "")
    rows = list(csv.DictReader(files[0].open()))
    table = json.loads(files[1].read_text())
    assert [row["path"] for row in rows] == [row["path"] for row in table]
    model = minivit.load("digits_vit")
    for row, one, name in zip(rows, table, ORDER, strict=True):
        logits = model(model.preprocess(open_picture(album / name)))
        values, indices = logits.double().softmax(1)[0].topk(3)
        assert [p["class"] for p in one["predictions"]] == [model.classes[i] for i in indices]
        given = torch.tensor([p["probability"] for p in one["predictions"]]).double()
        assert torch.allclose(given, values, atol=1e-5)
        assert row["class_1"] == one["predictions"][0]["class"] and row["error"] == ""
        assert float(row["probability_3"]) == pytest.approx(given[2].item(), abs=1e-6)


def test_a_broken_image_is_a_line_of_the_table_and_the_rest_goes_on(album, tmp_path, capsys):
    (album / "b.png").write_bytes(b"broken")
    for size in (1, 2, 32):
        assert predict(album, "--json", "-", "--batch-size", size) == 2
        output = capsys.readouterr()
        rows = json.loads(output.out)
        assert [row["path"] for row in rows] == [str(album / name) for name in ORDER]
        assert [sorted(row) for row in rows].count(["path", "predictions"]) == 4
        assert rows[1]["error"].startswith("UnidentifiedImageError")
        assert output.err.count("error: expected an image at ") == 1
    assert predict(album, "--csv", tmp_path / "a.csv") == 2
    assert "UnidentifiedImageError" in list(csv.DictReader((tmp_path / "a.csv").open()))[1]["error"]
    (tmp_path / "bad").mkdir()
    capsys.readouterr()
    assert predict(tmp_path / "bad") == 2 and "at least one image" in capsys.readouterr().err
    (album / "b.png").rename(tmp_path / "bad" / "b.png")
    assert predict(tmp_path / "bad") == 2 and capsys.readouterr().out == ""


def test_other_sizes_and_models_of_other_libraries_predict_too(album, capsys, monkeypatch):
    model = minivit.load("digits_vit", image_size=16)
    assert predict(album / "c.png", "--size", 16, "--top", 1) == 0
    answer = model(model.preprocess(open_picture(album / "c.png"))).softmax(1).max()
    assert f"{answer:.2%}" in capsys.readouterr().out
    (album / "mine.py").write_text(
        "import torch, types\nfrom minivit import Preprocess\n"
        "class Wrapped(torch.nn.Linear):\n"
        "    def forward(self, x): return types.SimpleNamespace(logits=super().forward(x.flatten(1)))\n"
        "def make():\n"
        "    torch.manual_seed(0); model = Wrapped(192, 3); model.preprocess = Preprocess(8, 8)\n"
        "    return model\n"
    )
    monkeypatch.chdir(album)
    assert main(["predict", "a.jpg", "--model", "mine:make"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert sorted(line.split()[1] for line in lines) == ["0", "1", "2"]
    assert main(["predict", "a.jpg", "--model", "mine:make", "--size", "16"]) == 2
    assert "--size is for minivit's own models" in capsys.readouterr().err
