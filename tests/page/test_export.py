"""What is written for pages, and what is refused."""

import json

import pytest
import torch

import minivit
from book._ext import live
from tests.page import javascript
from tests.page.conftest import ENGINE, with_every_half
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


def test_a_model_with_parts_removed_says_so(tmp_path):
    export_page(minivit.remove(minivit.load("digits_vit"), "mlp", [1]), tmp_path / "m.js")
    said = stored(tmp_path / "m.js")
    assert said["removed"] == [["mlp", [1]]]
    assert not [name for name, _ in said["tensors"] if name.startswith("blocks.1.mlp")]


READ = """
const { readFileSync } = require("fs");
const [engine, file] = JSON.parse(readFileSync(0));
new Function(readFileSync(file, "utf16le"))();
const { open } = new Function(`${readFileSync(engine, "utf8")}; return minivitEngine()`)();
const { layers, classes } = open(globalThis.minivitModels.m);
console.log(JSON.stringify({ classes, weight: [...layers["blocks.0.mlp.up"].weight] }));
"""


def test_every_number_of_half_precision_is_read_as_it_was_written(tmp_path):
    model = with_every_half()
    export_page(model, tmp_path / "m.js")
    read = javascript.run(READ, [str(ENGINE), str(tmp_path / "m.js")])
    assert torch.equal(torch.tensor(read["weight"]), model.blocks[0].mlp.up.weight.flatten())
    assert read["classes"] == model.classes


def test_the_files_of_models_on_the_site_are_small_enough_for_phones(tmp_path):
    live.write_models(tmp_path)
    files = sorted(tmp_path.glob("models/*.js"))
    assert [file.stem for file in files] == sorted(live.MODELS)
    for file in files:
        assert file.stat().st_size <= LARGEST == 2_000_000, file.name
        assert f"minivitSamples ??= {{}}).{file.stem} = [" in file.read_text("utf-16"), file.name


def create(**changes):
    model = minivit.create("vit_8px", **changes)
    model.preprocess = minivit.Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.5,))
    model.classes = list("0123456789")
    return model


def nameless():
    model = create()
    model.classes = None
    return model


def huge():
    model = create()
    with torch.no_grad():
        model.head.bias[0] = 1e5
    return model


@pytest.mark.parametrize("of, error, given", [
    (lambda: minivit.load("cifar10_alternet"), TypeError, "got Hybrid"),
    (lambda: torch.nn.Linear(1, 1), TypeError, "got Linear"),
    (lambda: create(window=2), ValueError, "got window=2"),
    (lambda: create(norm="post"), ValueError, "got norm='post'"),
    (lambda: create(pool="attention"), ValueError, "got pool='attention'"),
    (lambda: minivit.create("resnet18", classes=10), ValueError, "got stem='7x7'"),
    (nameless, ValueError, "classes are called: .* and None"),
    (huge, ValueError, "got others in head.bias"),
    (lambda: minivit.load("cifar10_feedforward"), ValueError, r"2,000,000 bytes, .* got \d"),
])  # fmt: skip
def test_what_a_page_cannot_run_is_refused_and_nothing_is_written(of, error, given, tmp_path):
    with pytest.raises(error, match=given):
        export_page(of(), tmp_path / "m.js")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_not_written(tmp_path):
    with pytest.raises(ValueError, match=r"got .*m\.bin"):
        export_page(minivit.load("digits_vit"), tmp_path / "m.bin")
    assert list(tmp_path.iterdir()) == []


def test_an_older_file_stays_where_the_new_one_is_refused(tmp_path):
    file = tmp_path / "m.js"
    file.write_text("old")
    with pytest.raises(TypeError):
        export_page(torch.nn.Identity(), file)
    assert file.read_text() == "old"
