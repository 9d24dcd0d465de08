import dataclasses
import os

import numpy as np
import pytest
import torch
from torch import nn

from minivit import Preprocess, create, load
from minivit.files import atomic_write, save
from minivit.surgery import NoResidualBlock
from tests.minivit.conftest import full_disk
from tests.parity import close, draw
from tests.refusals import assert_refused

SMALL = {"image_size": (8, 16), "patch_size": 4, "dim": 8, "depth": 2, "heads": 2, "classes": 3}
VARIANTS = [
    {},
    {"stem": "conv", "dim": 16, "pool": "mean"},  # BatchNorm's buffers, an integer among them
    {"positions": "sincos2d", "pool": "attention"},
    {"norm": "post"},
    {"window": 2, "dropout": 0.1, "stochastic_depth": 0.2},
]


def drawn(**changes):
    return draw(create("vit_32px", **SMALL | changes)).requires_grad_()


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_a_model_comes_back_from_its_file_with_all_it_has(tmp_path, changes, channels_last):
    model, path = drawn(**changes), tmp_path / "model.safetensors"
    if channels_last:
        model.to(memory_format=torch.channels_last)
    model.preprocess = Preprocess((8, 16), (9, 18), "bicubic", (0.1, 0.2, 0.3), (1.0, 2.0, 3.0))
    model.classes = np.array(["cat", "dog", "Übersee"])
    model.licence = "https://example.org/licence"
    save(model, path)
    back = load("vit_32px", path, **SMALL | changes)
    assert back.config == model.config
    assert (back.preprocess, back.licence) == (model.preprocess, model.licence)
    assert back.classes == ["cat", "dog", "Übersee"]
    assert not back.training and all(p.requires_grad for p in back.parameters())
    close(back.state_dict(), model.state_dict(), 0)
    images = torch.randn(2, 3, 8, 16)
    torch.testing.assert_close(back(images), model.eval()(images))


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


def test_a_save_on_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path, old = tmp_path / "model.safetensors", b"what was there"
    path.write_bytes(old)
    with full_disk(1000):
        save(drawn(), path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {path.name: old}
    save(drawn(), path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    load("vit_32px", path, **SMALL)


def test_neither_an_interrupt_nor_a_new_file_disturbs_the_old_one(tmp_path):
    path = tmp_path / "a.bin"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as scratch:
        scratch.write_text("half")
        raise KeyboardInterrupt
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.bin": "old"}
    with path.open() as reader:
        with atomic_write(path) as scratch:
            scratch.write_text("new")
            assert path.read_text() == "old"
        assert reader.read() == "old"
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.bin": "new"}


def changed(change):
    change(model := drawn())
    return model


def test_what_cannot_be_saved_or_would_be_another_model_is_refused(tmp_path):
    path, other = tmp_path / "a.safetensors", "not what its config says.*"
    assert_refused([
        (lambda: save(nn.Linear(2, 2), path), TypeError, "got Linear"),
        (lambda: save(drawn(), tmp_path / "a.pth"), ValueError, r"got .*a\.pth"),
        (lambda: save(drawn(), tmp_path / "no/a.safetensors"), FileNotFoundError, "no"),
        (lambda: save(changed(lambda m: vars(m).update(preprocess=len)), path), TypeError, "preprocess=<built-in"),
        (lambda: save(changed(lambda m: vars(m).update(classes=["cat"])), path), ValueError, "3 names of classes: got 1"),
        (lambda: save(changed(lambda m: setattr(m.blocks[1].mlp, "activation", nn.ReLU())), path), ValueError, rf"{other}mlp.activation is ReLU \(expected: GELU\)"),
        (lambda: save(changed(lambda m: setattr(m.norm, "eps", 1e-5)), path), ValueError, rf"{other}norm.eps is 1e-05 \(expected: 1e-06\)"),
        (lambda: save(changed(lambda m: m.blocks.__setitem__(0, NoResidualBlock(m.blocks[0]))), path), ValueError, rf"{other}blocks.0 is NoResidualBlock \(expected: Block\)"),
    ])  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_another_head_must_be_in_the_config_and_rates_of_dropout_need_not(tmp_path):
    model, path = create("vit_8px"), tmp_path / "model.safetensors"
    model.dropout.p, model.blocks[1].attention.attention_dropout = 0.5, 0.5
    model.head = torch.nn.Linear(64, 7)
    with pytest.raises(ValueError, match=r"head.*\[7\], expected \[10\].*set model.config ="):
        save(model, path)
    assert not path.exists()
    model.config = dataclasses.replace(model.config, classes=7)
    save(model, path)
    assert load("vit_8px", path, classes=7).head.weight.equal(model.head.weight)
