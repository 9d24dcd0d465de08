"""What is written for pages, and what is refused."""

import base64
import dataclasses
import json

import pytest
import torch

import minivit
from minivit.hub.page import export_page, packed
from tests.minivit.refusals import assert_refused


def test_a_file_holds_what_the_model_says_of_itself_and_its_numbers(tmp_path):
    model = minivit.load("digits_vit")
    export_page(model, tmp_path / "m.js")
    text = (tmp_path / "m.js").read_text()
    assert text.isascii() and text.startswith('(globalThis.minivitModels ??= {})["m"] = `')
    content = base64.b64decode(text.split("`")[1])
    end = 4 + int.from_bytes(content[:4], "little")
    said = json.loads(content[4:end])
    assert said["family"] == "ViT" and said["classes"] == list("0123456789")
    assert said["preprocess"]["mean"] == list(model.preprocess.mean)
    numbers = torch.frombuffer(bytearray(content[end:]), dtype=torch.float16)
    assert len(numbers) == sum(p.numel() for p in model.parameters())
    assert torch.equal(numbers[-10:].float(), model.head.bias)
    assert said["tensors"][-1] == ["head.bias", [10]]


def test_a_model_with_parts_removed_says_so():
    model = minivit.remove(minivit.load("digits_vit"), "mlp", [1])
    content = packed(model)
    said = json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])
    assert said["removed"] == [["mlp", [1]]]
    assert not [name for name, _ in said["tensors"] if name.startswith("blocks.1.mlp")]


def changed(**changes):
    model = minivit.create("vit_8px", **changes)
    model.preprocess = minivit.Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.5,))
    model.classes = list("0123456789")
    return model


def test_what_a_page_cannot_run_is_refused_and_nothing_is_written(tmp_path):
    file = tmp_path / "m.js"
    nameless, huge = changed(), changed()
    nameless.classes = None
    with torch.no_grad():
        huge.head.bias[0] = 1e5
    resnet = minivit.create("resnet18", classes=10)
    digits = minivit.load("digits_vit")
    assert_refused(
        [
            (
                lambda: export_page(digits, tmp_path / "m.bin"),
                ValueError,
                r"ends in \.js: got .*m\.bin",
            ),
            (
                lambda: export_page(minivit.load("cifar10_alternet"), file),
                TypeError,
                "ViTs, Mixers and ResNets .*got Hybrid",
            ),
            (lambda: export_page(torch.nn.Linear(1, 1), file), TypeError, "got Linear"),
            (lambda: export_page(changed(window=2), file), ValueError, "window=None: got window=2"),
            (
                lambda: export_page(changed(norm="post"), file),
                ValueError,
                "norm='pre': got norm='post'",
            ),
            (
                lambda: export_page(changed(pool="attention"), file),
                ValueError,
                "pool='class' or 'mean': got pool='attention'",
            ),
            (lambda: export_page(resnet, file), ValueError, "stem='3x3': got stem='7x7'"),
            (
                lambda: export_page(nameless, file),
                ValueError,
                "what classes are called: .* and None",
            ),
            (
                lambda: export_page(huge, file),
                ValueError,
                "half precision has: got others in head.bias",
            ),
            (
                lambda: export_page(changed(dim=512, depth=6), file),
                ValueError,
                r"at most 2,097,152 bytes .* got \d",
            ),
        ]
    )
    assert list(tmp_path.iterdir()) == []


def test_an_older_file_stays_where_the_new_one_is_refused(tmp_path):
    file = tmp_path / "m.js"
    file.write_text("old")
    model = changed()
    model.preprocess = dataclasses.replace(model.preprocess)
    with pytest.raises(TypeError):
        export_page(torch.nn.Identity(), file)
    assert file.read_text() == "old"
