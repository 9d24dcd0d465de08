"""`minivit predict`, `look` and `export`: tables, a picture of attention, a file that answers alike."""

import csv
import json

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

import minivit
from minivit.preprocessing import Preprocess
from tests.parity import draw
from tests.refusals import unchecked
from tests.vitlab.test_figures import drawn
from vitlab.commands import main
from vitlab.data.pictures import open_picture
from vitlab.figures import attention_overlay, look, rollout_overlay


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


@pytest.fixture
def photo(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(noise).resize((80, 60)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_a_picture_is_saved_with_class_and_probability(photo, tmp_path, capsys, monkeypatch):
    titles = []
    noted = lambda *a, **k: titles.append(k["title"]) or look(*a, **k)  # noqa: E731
    monkeypatch.setattr("vitlab.figures.look", noted)
    out = tmp_path / "seen.png"
    assert main(["look", str(photo), "--model", "cifar10_vit", "--out", str(out)]) == 0
    model = minivit.load("cifar10_vit")
    answer = model(model.preprocess(Image.open(photo))).softmax(1)[0]
    said = f"photo.png: {model.classes[answer.argmax()]}, {answer.max():.1%}, by cifar10_vit"
    assert titles == [said]
    assert capsys.readouterr().out == f"{said}\nwritten to {out}\n"
    assert min(Image.open(out).size) > 600


def test_the_panels_are_the_image_what_rollout_ends_in_and_the_heads_of_the_block():
    model, image = minivit.load("cifar10_vit"), torch.randn(3, 32, 32)
    *_, (title, last) = drawn(rollout_overlay(model, image)).items()
    overlays = {f"rollout of all blocks: {title.split()[-1]}": last}
    overlays |= drawn(attention_overlay(model, image, block=2))
    shown, *panels = (ax for ax in look(model, image, block=2).axes if ax.images)
    assert shown.get_title() == "the image" and len(panels) == 1 + 4
    for panel, (title, overlay) in zip(panels, overlays.items(), strict=True):
        assert panel.get_title() == title
        np.testing.assert_array_equal(panel.images[1].get_array(), overlay)


@pytest.mark.parametrize(("name", "changes"), [
    ("vit_8px", {"depth": 1, "pool": "class"}),
    pytest.param("mixer_8px", {"depth": 1}, marks=pytest.mark.full),
    pytest.param("alternet_32px", {"image_size": 8, "channels": 1}, marks=pytest.mark.full),
    pytest.param("resnet_8px", {}, marks=pytest.mark.full),
])  # fmt: skip
def test_the_files_logits_are_the_models_for_any_batch(tmp_path, capsys, name, changes):
    """pytorch#157621, livekit-wakeword#39."""
    model, path = draw(minivit.create(name, **changes)).eval(), tmp_path / "a.onnx"
    model.preprocess = Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.25,))
    model.classes, model.licence = [f"class {i}" for i in range(10)], "CC0"
    minivit.save(model, tmp_path / "a.safetensors")
    options = ["--to", "onnx", "--out", str(path)]
    with unchecked():  # the checks of shapes would fix the size of the batch
        assert main(["export", str(tmp_path / "a.safetensors"), *options]) == 0
    assert f"; written to {path}" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for size in (1, 5):
        images = torch.randn(size, 1, 8, 8)
        logits = torch.from_numpy(session.run(None, {"images": images.numpy()})[0])
        expected = model(images)
        assert expected.abs().max() > 0.1
        assert (logits - expected).abs().max() < 1e-4 * max(1, expected.abs().max())
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == model.classes and about["licence"] == "CC0"
    assert json.loads(about["preprocess"])["mean"] == [0.5]


def test_a_file_that_answers_otherwise_is_not_written(tmp_path, capsys, monkeypatch):
    class Session(onnxruntime.InferenceSession):
        def run(self, *args):
            return [super().run(*args)[0] + 100]

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    assert main(["export", "digits_vit", "--out", str(tmp_path / "a.onnx")]) == 2
    assert "agrees with digits_vit: got 1e+02 apart" in capsys.readouterr().err
    assert main(["export", "digits_vit", "--out", str(tmp_path / "a.pt")]) == 2
    assert "a .onnx file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
