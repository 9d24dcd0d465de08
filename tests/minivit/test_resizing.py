"""Trained models for images of another size."""

import pytest
import torch
import torchvision
from PIL import Image

import minivit
from minivit import Preprocess, ViTConfig
from minivit.catalogue import MODELS
from minivit.loading import resized
from tests.parity import draw

VARIANTS = [
    ("vit_32px", {}),
    ("vit_32px", {"pool": "class"}),
    ("vit_32px", {"positions": "sincos2d"}),
    ("vit_32px", {"positions": "sincos1d", "window": 4}),
    *((name, {}) for name in ("resnet_32px", "alternet_32px", "pit_32px", "hybrid_32px")),
]


@pytest.mark.parametrize("size", [(64, 64), (32, 48), (16, 64)])
@pytest.mark.parametrize(("name", "changes"), VARIANTS)
def test_it_answers_as_the_model_does_to_images_of_that_size(name, changes, size):
    model, images = minivit.create(name, **changes), torch.randn(2, 3, *size)
    if name == "vit_32px":
        model = minivit.remove(model, "mlp", [1])
    other = resized(draw(model).eval(), size[0] if size[0] == size[1] else size)
    with torch.no_grad():
        assert torch.equal(other(images), model(images))
    assert other.config.image_size == size and not other.training
    assert model.config.image_size == 32 and other.removed == model.removed


def test_load_takes_another_image_size_for_a_name_a_file_and_a_folder(tmp_path):
    trained = minivit.load("digits_vit")
    (tmp_path / "run").mkdir()
    minivit.save(trained, tmp_path / "run/model.safetensors")
    photo = Image.new("L", (30, 20), 90)
    for name in ("digits_vit", tmp_path / "run", tmp_path / "run/model.safetensors"):
        model = minivit.load(name, image_size=(12, 16))
        assert model.config.image_size == (12, 16) and model.classes == trained.classes
        images = model.preprocess(photo)
        assert images.shape == (1, 1, 12, 16)
        assert torch.equal(model(images), trained(images))
    model = minivit.load("vit_8px", tmp_path / "run/model.safetensors", image_size=16)
    assert model.config.image_size == (16, 16) and model.preprocess.size == (16, 16)
    assert minivit.load("digits_vit", image_size=8).preprocess == trained.preprocess


def test_torchvisions_weights_come_at_their_own_size_and_are_then_resampled(monkeypatch, tmp_path):
    config = ViTConfig(patch_size=32, dim=12, depth=2, heads=3)
    monkeypatch.setitem(MODELS, "vit_b_32", config)
    torch.save(draw(minivit.ViT(config)).state_dict(), tmp_path / "a.pth")
    monkeypatch.setattr("minivit.loading.fetch", lambda url: tmp_path / "a.pth")
    images = torch.randn(1, 3, 96, 128)
    model = minivit.load("vit_b_32", image_size=(96, 128))
    with torch.no_grad():
        assert torch.equal(model(images), minivit.load("vit_b_32")(images))
    theirs = Preprocess.like(torchvision.models.ViT_B_32_Weights.IMAGENET1K_V1.transforms())
    assert model.preprocess.size == (96, 128) and model.preprocess.std == theirs.std
