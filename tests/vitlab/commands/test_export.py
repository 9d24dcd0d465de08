"""`minivit export`: the file answers as the model does."""

import json

import pytest
import torch

import minivit
from minivit.preprocessing import Preprocess
from tests.parity import draw
from tests.refusals import unchecked
from vitlab.commands import main

onnxruntime = pytest.importorskip("onnxruntime")


def small(name, **changes):
    model = draw(minivit.create(name, **changes)).eval()
    model.preprocess = Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.25,))
    model.classes, model.licence = [f"class {i}" for i in range(10)], "CC0"
    return model


def answers(path, images):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session, torch.from_numpy(session.run(None, {"images": images.numpy()})[0])


@pytest.mark.parametrize(("name", "changes"), [
    ("vit_8px", {"depth": 1, "pool": "class"}),
    pytest.param("mixer_8px", {"depth": 1}, marks=pytest.mark.full),
    pytest.param("alternet_32px", {"image_size": 8, "channels": 1}, marks=pytest.mark.full),
    pytest.param("resnet_8px", {}, marks=pytest.mark.full),
])  # fmt: skip
def test_the_files_logits_are_the_models_for_any_batch(tmp_path, capsys, name, changes):
    """pytorch#157621, livekit-wakeword#39."""
    model, path = small(name, **changes), tmp_path / "a.onnx"
    minivit.save(model, tmp_path / "a.safetensors")
    options = ["--to", "onnx", "--out", str(path)]
    with unchecked():  # the checks of shapes would fix the size of the batch
        assert main(["export", str(tmp_path / "a.safetensors"), *options]) == 0
    assert f"; written to {path}" in capsys.readouterr().out
    for size in (1, 5):
        images = torch.randn(size, 1, 8, 8)
        session, logits = answers(str(path), images)
        with torch.no_grad():
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
