"""What is written for pages, what is refused, and how a reader's image is prepared."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

import minivit
from book._ext import live
from book.tools.large_model import Inside, to_bytes
from tests.page.conftest import node, with_every_half
from vitlab.convert.page import LARGEST, export_page


def stored(file):
    """What a file hands over: JSON, but for the control characters that its numbers have."""
    text = file.read_bytes().decode("utf-16")  # strict, and as the mark in front says
    name, _, value = text.partition(" = ")
    assert name == f'(globalThis.minivitModels ??= {{}})["{file.stem}"]'
    return json.loads(value.removesuffix(";\n"), strict=False)


def test_a_file_holds_what_the_model_says_of_itself_and_its_numbers(tmp_path):
    model = minivit.load("digits_vit")
    export_page(model, tmp_path / "m.js")
    said = stored(tmp_path / "m.js")
    assert said["family"] == "ViT" and said["classes"] == list("0123456789")
    assert said["preprocess"]["mean"] == list(model.preprocess.mean)
    numbers = torch.frombuffer(bytearray(said["numbers"].encode("utf-16-le")), dtype=torch.float16)
    assert len(numbers) == sum(p.numel() for p in model.parameters())
    assert torch.equal(numbers[-10:].float(), model.head.bias)
    assert said["tensors"][-1] == ["head.bias", [10]]
    export_page(minivit.remove(model, "mlp", [1]), tmp_path / "m.js")
    said = stored(tmp_path / "m.js")
    assert said["removed"] == [["mlp", [1]]]
    assert not [name for name, _ in said["tensors"] if name.startswith("blocks.1.mlp")]
    # Every number of half precision is read as it was written.
    model, call = with_every_half(), "return minivitEngine().open(minivitModels.m)"
    read = node(call, None, "engine", m=model)
    weight = torch.tensor(read["layers"]["blocks.0.mlp.up"]["weight"])
    assert torch.equal(weight, model.blocks[0].mlp.up.weight.flatten())
    assert read["classes"] == model.classes


def test_the_files_of_models_on_the_site_are_small_enough_for_phones(tmp_path):
    live.write_models(tmp_path)
    files = sorted(tmp_path.glob("models/*.js"))
    assert [file.stem for file in files] == sorted(live.MODELS)
    for file in files:
        assert file.stat().st_size <= LARGEST == 2_000_000, file.name
        assert f"minivitSamples ??= {{}}).{file.stem} = [" in file.read_text("utf-16"), file.name


def create(classes="0123456789", largest=0.0, **changes):
    model = minivit.create("vit_8px", **changes)
    model.preprocess = minivit.Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.5,))
    model.classes = classes and list(classes)
    model.head.bias.data[0] = largest
    return model


@pytest.mark.parametrize("of, error, given", [
    (lambda: minivit.load("cifar10_alternet"), TypeError, "got Hybrid"),
    (lambda: torch.nn.Linear(1, 1), TypeError, "got Linear"),
    (lambda: create(window=2), ValueError, "got window=2"),
    (lambda: create(norm="post"), ValueError, "got norm='post'"),
    (lambda: create(pool="attention"), ValueError, "got pool='attention'"),
    (lambda: minivit.create("resnet18", classes=10), ValueError, "got stem='7x7'"),
    (lambda: create(classes=None), ValueError, "preprocess and classes: .* None"),
    (lambda: create(largest=1e5), ValueError, "got others in head.bias"),
    (lambda: minivit.load("cifar10_feedforward"), ValueError, r"2,000,000 bytes: got \d"),
])  # fmt: skip
def test_what_a_page_cannot_run_is_refused_and_the_older_file_stays(of, error, given, tmp_path):
    (tmp_path / "m.js").write_text("old")
    with pytest.raises(error, match=given):
        export_page(of(), tmp_path / "m.js")
    with pytest.raises(ValueError, match=r"got .*m\.bin"):
        export_page(minivit.load("digits_vit"), tmp_path / "m.bin")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


RUN = """
return given.map(([image, size, resize, channels]) =>
  minivitImage().prepared(image, size, resize, channels));
"""


def test_resized_cropped_and_grey_as_pil_does_it():
    draws = np.random.default_rng(0)
    given, expected = [], []
    for height, width, size, resize, mean in [
        (8, 8, (8, 8), (8, 8), (0.5,)),
        (90, 61, (8, 8), (8, 8), (0.5,)),
        (37, 200, (32, 32), (32, 32), (0.5,) * 3),
        (20, 11, (32, 32), (36, 36), (0.5,) * 3),
        (64, 65, (9, 12), (10, 13), (0.5,) * 3),
    ]:
        smooth = draws.integers(0, 256, (5, 5, 3), dtype=np.uint8)
        image = Image.fromarray(smooth).resize((width, height), Image.Resampling.BICUBIC)
        pixels = {"data": list(image.convert("RGBA").tobytes()), "height": height, "width": width}
        given.append([pixels, size, resize, len(mean)])
        fit = minivit.Preprocess(size, resize, mean=mean, std=mean).fit(image)
        expected.append(fit[0].permute(1, 2, 0).flatten().int())
    found = node(RUN, given, "image")
    for ours, theirs in zip(found, expected, strict=True):
        assert len(set(theirs.tolist())) > 20
        away = (torch.tensor(ours) - theirs).abs()
        assert away.max() <= 1, "PIL's weights are rounded, the page's are not"


def test_a_vit_in_8_bits_gives_its_tokens_and_weights_of_every_block():
    torch.manual_seed(0)
    model = minivit.ViT(minivit.ViTConfig(32, 8, classes=3, dim=24, depth=2, heads=3))
    model.preprocess = minivit.Preprocess((32, 32), resize=(32, 32))
    pixels = torch.randint(256, (32, 32, 3), dtype=torch.uint8)
    tokens, weights = Inside(model.eval())(pixels)
    session = onnxruntime.InferenceSession(to_bytes(Inside(model), pixels))
    found, looks = map(torch.from_numpy, session.run(None, {"pixels": pixels.numpy()}))
    assert tokens.shape == (2, 17, 24) and weights.shape == (2, 3, 17, 17)
    torch.testing.assert_close(looks, weights, atol=0.02, rtol=0)
    assert torch.cosine_similarity(found, tokens, dim=-1).min() > 0.99
    with torch.no_grad():
        logits = model(model.preprocess(pixels.permute(2, 0, 1)[None]))
    torch.testing.assert_close(model.head(tokens[-1, 0]), logits[0])
