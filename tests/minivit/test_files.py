import dataclasses
import json
import os
import resource

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from minivit.catalogue import create
from minivit.files import replacing, save
from minivit.loading import load
from minivit.preprocessing import Preprocess
from minivit.surgery import NoResidualBlock

SMALL = {"image_size": (8, 16), "patch_size": 4, "dim": 8, "depth": 2, "heads": 2, "classes": 3}
VARIANTS = [
    {},
    {"stem": "conv", "dim": 16, "pool": "mean"},  # BatchNorm's buffers, an integer among them
    {"positions": "sincos2d", "pool": "attention"},
    {"norm": "post"},
    {"window": 2, "dropout": 0.1, "stochastic_depth": 0.2},
]


def drawn(**changes):
    """A small model, none of whose numbers is one that training starts from."""
    model = create("vit_32px", **SMALL | changes)
    g = torch.Generator().manual_seed(0)
    for tensor in model.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand(tensor.shape, generator=g) + 0.5)
        else:
            tensor.fill_(7)
    return model


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_a_model_comes_back_from_its_file_with_all_that_goes_with_it(tmp_path, changes):
    model, path = drawn(**changes), tmp_path / "model.safetensors"
    model.preprocess = Preprocess((8, 16), (9, 18), "bicubic", (0.1, 0.2, 0.3), (1.0, 2.0, 3.0))
    model.classes, model.licence = ("cat", "dog", "Übersee"), "https://example.org/licence"
    save(model, path)
    back = load("vit_32px", path, **SMALL | changes)
    assert back.config == model.config
    assert (back.preprocess, back.licence) == (model.preprocess, model.licence)
    assert back.classes == ["cat", "dog", "Übersee"]
    assert not back.training and all(p.requires_grad for p in back.parameters())
    assert back.state_dict().keys() == model.state_dict().keys()
    for key, tensor in model.state_dict().items():
        assert torch.equal(back.state_dict()[key], tensor), key
    images = torch.randn(2, 3, 8, 16)
    with torch.no_grad():
        assert torch.equal(back(images), model.eval()(images))


def test_a_file_does_not_follow_the_model_nor_the_model_the_file(tmp_path):
    path = tmp_path / "model.safetensors"
    save(drawn(), path)
    model = load("vit_32px", path, **SMALL)
    before = model.head.weight.clone()
    size = path.stat().st_size
    with path.open("r+b") as file:  # in place, as no program should
        file.seek(size // 2)
        file.write(b"\0" * (size - size // 2))
    assert torch.equal(model.head.weight, before)


def test_others_may_read_a_saved_file_where_the_umask_lets_them(tmp_path):
    old = os.umask(0o022)
    try:
        save(drawn(), tmp_path / "model.safetensors")
    finally:
        os.umask(old)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == 0o644


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path, old = tmp_path / "model.safetensors", b"what was there"
    path.write_bytes(old)

    def full(scratch, content):
        with scratch.open("wb") as file:
            file.write(content[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        save(drawn(), path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {path.name: old}
    monkeypatch.undo()
    save(drawn(), path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    load("vit_32px", path, **SMALL)


def test_a_disk_that_refuses_is_an_oserror(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(drawn(), tmp_path / "model.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.bin"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as scratch:
        scratch.write_text("half")
        raise KeyboardInterrupt
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.bin": "old"}


def test_a_reader_of_the_old_file_is_not_disturbed_by_the_new_one(tmp_path):
    path = tmp_path / "a.bin"
    path.write_text("old")
    with path.open() as reader:
        with replacing(path) as scratch:
            scratch.write_text("new")
            assert path.read_text() == "old"
        assert reader.read() == "old"
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.bin": "new"}


def test_a_model_with_its_channels_last_in_memory_can_be_saved(tmp_path):
    model = drawn().to(memory_format=torch.channels_last)
    assert not model.patch_embedding.projection.weight.is_contiguous()
    save(model, tmp_path / "model.safetensors")
    back = load("vit_32px", tmp_path / "model.safetensors", **SMALL)
    for key, tensor in model.state_dict().items():
        assert torch.equal(back.state_dict()[key], tensor), key


def with_(**attributes):
    model = drawn()
    vars(model).update(attributes)
    return model


@pytest.mark.parametrize(
    ("model", "path", "error", "said"),
    [
        (lambda: nn.Linear(2, 2), "a.safetensors", TypeError, "got Linear"),
        (drawn, "a.pth", ValueError, r"got .*a\.pth"),
        (drawn, "no/a.safetensors", FileNotFoundError, "no"),
        (lambda: with_(preprocess=len), "a.safetensors", TypeError, "preprocess=<built-in"),
        (lambda: with_(classes=["cat"]), "a.safetensors", ValueError, "3 names of classes: got 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_refused_and_nothing_is_written(tmp_path, model, path, error, said):
    with pytest.raises(error, match=said):
        save(model(), tmp_path / path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_another_head_than_its_config_says_is_refused_until_the_two_agree(tmp_path):
    model, path = create("vit_8px"), tmp_path / "model.safetensors"
    model.head = torch.nn.Linear(64, 7)
    with pytest.raises(ValueError, match=r"head.*\[7\], expected \[10\].*set model.config ="):
        save(model, path)
    assert not path.exists()
    model.config = dataclasses.replace(model.config, classes=7)
    save(model, path)
    assert load("vit_8px", path, classes=7).head.weight.equal(model.head.weight)


def rectified(model):
    model.blocks[1].mlp.activation = nn.ReLU()


def coarse(model):
    model.norm.eps = 1e-5


def without_residuals(model):
    model.blocks[0] = NoResidualBlock(model.blocks[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rectified, r"mlp.activation is ReLU \(expected: GELU\)"),
        (coarse, r"norm.eps is 1e-05 \(expected: 1e-06\)"),
        (without_residuals, r"blocks.0 is NoResidualBlock \(expected: Block\)"),
    ],
)
def test_a_model_that_would_come_back_as_another_function_is_refused(tmp_path, change, said):
    model, path = create("vit_8px"), tmp_path / "model.safetensors"
    change(model)
    with pytest.raises(ValueError, match=f"not what its config says.*{said}"):
        save(model, path)
    assert list(tmp_path.iterdir()) == []


def test_rates_of_dropout_matter_in_training_alone_and_may_have_been_changed(tmp_path):
    model, path = create("vit_8px"), tmp_path / "model.safetensors"
    model.dropout.p, model.blocks[1].attention.attention_dropout = 0.5, 0.5
    save(model, path)
    load("vit_8px", path)


def with_about(path, **changes):
    """Rewrites what a file without a checksum says beside its numbers; none for a part left out."""
    with safetensors.safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["minivit"]) | {"sha256": None} | changes
        state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    about = {part: value for part, value in about.items() if value is not None}
    safetensors.torch.save_file(state, path, {"minivit": json.dumps(about)})


def test_a_file_that_names_no_family_holds_a_vit_and_an_unknown_one_is_refused(tmp_path):
    model, path = drawn(), tmp_path / "model.safetensors"
    save(model, path)
    with_about(path, family=None)
    assert load("vit_32px", path, **SMALL).config == model.config
    with_about(path, family="Mamba")
    with pytest.raises(ValueError, match="got 'Mamba'"):
        load("vit_32px", path, **SMALL)


def test_class_names_may_be_any_sequence_and_must_be_one_for_each_logit(tmp_path):
    model, path = create("vit_8px"), tmp_path / "model.safetensors"
    model.classes = np.array(list("abcdefghij"))
    save(model, path)
    assert load("vit_8px", path).classes == list("abcdefghij")
    with_about(path, classes=["a"])
    with pytest.raises(ValueError, match="1 classes are named for 10"):
        load("vit_8px", path)
