"""Any model by one name. Nothing is fetched: weights lie in caches and folders that a test fills."""

import sys

import numpy as np
import pytest
import timm
import torch
import torchvision
import transformers
from PIL import Image
from torch import nn
from torchvision.transforms import functional as tv

import minivit
from tests.foreign import WIDE
from tests.parity import draw
from vitlab.convert.huggingface import huggingface_preprocess as huggingfaces
from vitlab.convert.open_model import LoadedModel, open_any
from vitlab.convert.timm import timm_preprocess as timms

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 7, 3), dtype=np.uint8)
PHOTO = Image.fromarray(PIXELS).resize((61, 83))


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """The Hugging Face Hub says at once that it cannot be reached, where nothing is cached."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def check(opened, kind, images):
    """What holds of every model that was opened."""
    assert isinstance(opened, LoadedModel) and type(opened.model) is kind
    assert not any(part.training for part in opened.model.modules())
    assert {(p.dtype, p.device.type) for p in opened.model.parameters()} == {(torch.float32, "cpu")}
    with torch.no_grad():
        opened.model(images)


def check_twin(opened):
    """The untrained twin has the same parts and shapes, and other numbers."""
    twin = opened.untrained()
    assert type(twin) is type(opened.model) and not twin.training
    ours, theirs = opened.model.state_dict(), twin.state_dict()
    assert {k: v.shape for k, v in ours.items()} == {k: v.shape for k, v in theirs.items()}
    assert any(not torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_model_of_timm(tmp_path):
    model = draw(timm.create_model("test_vit", num_classes=7))
    timm.models.save_for_hf(model, tmp_path, model_config={"num_classes": 7})
    opened = open_any(f"timm:local-dir:{tmp_path}")
    images = torch.randn(1, 3, 160, 160)
    check(opened, type(model), images)
    assert torch.equal(opened.model(images), model.eval()(images))
    check_twin(opened)
    assert opened.name == f"timm:local-dir:{tmp_path}" and opened.unprepared is None
    assert opened.preprocess.size == (160, 160) and opened.classes is None
    opened = open_any("timm:vit_tiny_patch16_224", untrained=True)
    check(opened, timm.models.VisionTransformer, torch.zeros(1, 3, 224, 224))
    assert opened.classes[0] == "tench, Tinca tinca" and opened.licence is None
    check_twin(opened)


def test_a_model_of_hugging_face(tmp_path):
    names = {0: "cat", 1: "dog", 2: "fox", 3: "owl", 4: "yak"}
    config = transformers.ViTConfig(**WIDE, id2label=names)
    model = draw(transformers.ViTForImageClassification(config).half().eval())
    model.save_pretrained(tmp_path)
    processor = transformers.ViTImageProcessor(size={"height": 16, "width": 16}, resample=3)
    processor.save_pretrained(tmp_path)
    opened = open_any(f"hf:{tmp_path}")
    images = torch.randn(1, 3, 16, 16)
    check(opened, transformers.ViTForImageClassification, images)
    assert torch.equal(opened.model(images).logits, model.float()(images).logits)
    assert list(opened.classes) == list(names.values())
    half = (0.5, 0.5, 0.5)
    expected = minivit.Preprocess((16, 16), (16, 16), "bicubic", half, half, stretch=True)
    assert opened.preprocess == expected
    check_twin(opened)
    check(open_any(f"hf:{tmp_path}", untrained=True), type(model), images)


@pytest.mark.parametrize(
    ("whole", "part"), [("CLIP", "CLIPVisionModelWithProjection"), ("Siglip", "SiglipVisionModel")]
)
def test_of_a_model_for_text_and_images_the_part_for_images_is_opened(tmp_path, whole, part):
    text = {"vocab_size": 20, "hidden_size": 12, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}  # fmt: skip
    config = getattr(transformers, f"{whole}Config")(vision_config=WIDE, text_config=text)
    model = getattr(transformers, f"{whole}Model")(config).eval()
    model.save_pretrained(tmp_path)
    opened = open_any(f"hf:{tmp_path}")
    images = torch.randn(1, 3, 16, 16)
    check(opened, getattr(transformers, part), images)
    tower = opened.model.vision_model if whole == "CLIP" else opened.model
    states = tower.state_dict(), model.vision_model.state_dict()
    assert all(map(torch.equal, states[0].values(), states[1].values()))
    check_twin(opened)
    assert opened.preprocess is None
    assert "how its images are prepared is not known" in opened.unprepared


def test_a_model_of_torchvision(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    model = draw(torchvision.models.mobilenet_v3_small().eval())
    path = tmp_path / "checkpoints" / "mobilenet_v3_small-047dcff4.pth"
    path.parent.mkdir()
    torch.save(model.state_dict(), path)
    monkeypatch.setattr("vitlab.convert.open_model.fetch", lambda url: path)
    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", lambda *a, **k: torch.load(path))
    opened = open_any("torchvision:mobilenet_v3_small")
    images = opened.preprocess(PHOTO)
    check(opened, torchvision.models.MobileNetV3, images)
    torch.testing.assert_close(opened.model(images), model(images))
    check_twin(opened)
    assert opened.classes[0] == "tench" and opened.preprocess.resize == (256, 256)
    check(open_any("torchvision:vit_b_32", True), torchvision.models.VisionTransformer, images)


def test_models_of_ours(tmp_path):
    model = minivit.load("digits_vit")
    (tmp_path / "run").mkdir()
    minivit.save(model, tmp_path / "run" / "model.safetensors")
    images = torch.randn(1, 1, 8, 8)
    for name in "digits_vit", str(tmp_path / "run"), str(tmp_path / "run" / "model.safetensors"):
        opened = open_any(name)
        check(opened, minivit.ViT, images)
        assert torch.equal(opened.model(images), model(images))
        assert (opened.preprocess, opened.name) == (model.preprocess, name)
        assert list(opened.classes) == list(model.classes) and opened.licence == "MIT"
        check_twin(opened)
        untrained = open_any(name, untrained=True)
        assert untrained.preprocess == model.preprocess and untrained.licence is None
        assert not torch.equal(untrained.model(images), model(images))
    small = open_any("vit_32px", untrained=True)
    assert small.preprocess == minivit.Preprocess((32, 32), (32, 32)) and small.classes is None
    part = tmp_path / "part.safetensors"
    minivit.save(minivit.remove(model, "attention", blocks=[1]), part)
    check_twin(open_any(str(part)))
    assert open_any(str(part)).untrained().removed == (("attention", (1,)),)


FUNCTIONS = """
import minivit
from torch import nn

def plain():
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).double()

def known():
    model = plain()
    model.preprocess, model.classes, model.licence = len, ["a", "b"], "MIT"
    return model

def nothing():
    pass

def broken():
    raise KeyError("sizes")
"""


def test_a_function_of_the_users_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "my_models_of_a_test.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    opened = open_any("my_models_of_a_test:plain")
    check(opened, nn.Sequential, torch.zeros(1, 1, 2, 2))
    assert opened.untrained is None and opened.preprocess is None and opened.classes is None
    assert "my_models_of_a_test:plain has no attribute preprocess" in opened.unprepared
    known = open_any("my_models_of_a_test:known")
    assert (known.preprocess, known.classes, known.licence) == (len, ["a", "b"], "MIT")
    assert sys.path == path
    for name, value in ("nothing", "NoneType"), ("broken", "'sizes'"), ("missing", "'missing'"):
        with pytest.raises(ValueError, match=value):
            open_any(f"my_models_of_a_test:{name}")


@pytest.mark.parametrize(("name", "untrained", "error", "problem"), [
    ("", False, ValueError, "name of a model: got ''"),
    ("timm:vit_tiny_patch16_22", False, ValueError, "Unknown model .vit_tiny_patch16_22"),
    ("timm:vit_tiny_patch16_224.none", False, ValueError, r"Invalid pretrained tag \(none\)"),
    ("timm:vit_tiny_patch16_224", False, OSError, "cannot open timm:vit_tiny_patch16_224: .*HF_HOME moves it"),
    ("timm:test_vit4", False, ValueError, "No pretrained weights exist for test_vit4"),
    ("hf:nobody/nothing", False, OSError, "cannot open hf:nobody/nothing: .*HF_HOME"),
    ("torchvision:vit_b_23", False, ValueError, "a classifier: did you mean vit_b_32.* got torchvision:vit_b_23"),
    ("vit_8px", False, ValueError, "no weights for vit_8px: it can only be opened untrained"),
    ("nowhere.safetensors", False, FileNotFoundError, "nowhere.safetensors"),
    ("nowhere.safetensors", True, FileNotFoundError, "nowhere.safetensors"),
    ("kitten:small", False, ValueError, "module kitten in .* or one of torchvision, timm, hf: ModuleNotFound"),
])  # fmt: skip
def test_a_name_that_opens_nothing_gets_one_clear_error(name, untrained, error, problem):
    with pytest.raises(error, match=problem):
        open_any(name, untrained)


def test_images_are_prepared_as_by_timm_and_by_hugging_faces_processors():
    defaults = {"input_size": (3, 32, 32), "interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "center", "mean": (0.1, 0.2, 0.3), "std": (0.3, 0.2, 0.1)}  # fmt: skip
    for changes in (
        {},
        {"crop_pct": 1.0, "interpolation": "bilinear"},
        {"crop_mode": "squash", "crop_pct": 0.9},
        {"input_size": (3, 24, 40), "crop_mode": "squash", "crop_pct": 1.0},
    ):
        config = defaults | changes
        expected = timm.data.create_transform(**config, is_training=False)(PHOTO)[None]
        torch.testing.assert_close(timms(config)(PHOTO), expected)
    for kind, changes in (
        ("ViTImageProcessor", {"size": {"height": 24, "width": 32}}),
        ("CLIPImageProcessor", {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}}),
        ("SiglipImageProcessor", {"size": {"height": 32, "width": 32}}),
    ):  # fmt: skip
        processor = getattr(transformers, kind)(**changes)
        expected = processor(images=PHOTO, return_tensors="pt")["pixel_values"]
        prepared = huggingfaces(processor)(tv.pil_to_tensor(PHOTO))  # its processors resize tensors
        torch.testing.assert_close(prepared, expected, atol=0.02, rtol=0)


def test_another_preparation_is_refused():
    with pytest.raises(ValueError, match="crop_mode center or squash: got border"):
        timms({"input_size": (3, 8, 8), "crop_mode": "border"})
    for kind, changes, problem in (
        ("ViTImageProcessor", {"do_resize": False}, "'do_resize': False"),
        ("ViTImageProcessor", {"rescale_factor": 1 / 127.5}, "scales by 1/255"),
        ("ViTImageProcessor", {"resample": 0}, "'resample': 0"),
        ("CLIPImageProcessor", {"do_center_crop": False}, "'shortest_edge': 224.*crop_size': None"),
    ):
        with pytest.raises(ValueError, match=problem):
            huggingfaces(getattr(transformers, kind)(**changes))
