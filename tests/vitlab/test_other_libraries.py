"""What from_timm and from_huggingface make computes what theirs does, and a fault would be seen."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

import vitlab
from minivit.vit import MLP
from tests.foreign import EVERY, REPRESENTATIVE, comparable, converted, huggingfaces, timms
from tests.parity import DTYPES, assert_same, given, observe, pictures, put, unseen


@pytest.mark.parametrize(("make", "name"), EVERY, ids=[name for _, name in EVERY])
@DTYPES
def test_logits_tokens_and_gradients_are_equal(make, name, dtype):
    theirs = make(name, dtype)
    images = pictures(theirs, 16, batch=2)
    expected = observe(comparable(theirs), images)
    assert len(expected) == 4  # of two blocks, logits and gradient
    assert_same(observe(converted(theirs), images), expected)


@pytest.mark.parametrize(("make", "name"), EVERY, ids=[name for _, name in EVERY])
def test_a_copy_for_images_of_another_size_gives_what_its_source_gives_of_them(make, name):
    theirs, size = make(name), (32, 24)
    images = pictures(theirs, 32)[..., :24]
    if make is timms:
        expected, convert = timms(name, dynamic_img_size=True)(images), vitlab.from_timm
    else:
        asked = {} if name.startswith(("Dinov2", "DINOv3")) else {"interpolate_pos_encoding": True}
        expected, convert = given(comparable(theirs)(images, **asked)), vitlab.from_huggingface
    before = {key: tensor.clone() for key, tensor in theirs.state_dict().items()}
    torch.testing.assert_close(convert(theirs, size)(images), expected)
    assert all(torch.equal(before[key], now) for key, now in theirs.state_dict().items())


@pytest.mark.parametrize(
    ("make", "name"),
    [pytest.param(*case, marks=[] if case in REPRESENTATIVE else pytest.mark.full) for case in EVERY],
    ids=[name for _, name in EVERY],
)  # fmt: skip
def test_one_number_changed_under_any_key_of_either_model_fails_the_comparison(make, name):
    theirs = make(name)
    ours, images = converted(theirs), pictures(theirs, 16)
    expected = observe(ours, images, gradient=False)
    for model in comparable(theirs), ours:
        harmless = [".".join(key).rstrip(".") for key in unseen(model, images, expected)]
        # The same number for all keys of a query is nothing to a softmax. The others nobody reads.
        unread = ("bias.k", "k_proj.bias", "mask_token", "pooler.dense.weight", "pooler.dense.bias")
        assert all(key.endswith(unread) for key in harmless), harmless


def swapped_q_and_k(model):
    for block in model.blocks:
        for p in block.attention.qkv.parameters():
            q, k, v = p.chunk(3)
            p.copy_(torch.cat([k, q, v]))


def gates_last(model):
    for block in model.blocks:
        for p in block.mlp.up.parameters():
            p.copy_(p.roll(len(p) // 2, 0))


def missing_registers(model):
    model.class_token = nn.Parameter(model.class_token[:, :1], requires_grad=False)
    model.positions.registers = 0


def registers_last(model):
    first = model.class_token.shape[1]

    def turned(module, args):  # the class token, the patches, the registers
        x = args[0]
        return torch.cat([x[:, :1], x[:, first:], x[:, 1:first]], 1), *args[1:]

    model.blocks[0].register_forward_pre_hook(turned)


EXACT, TANH = nn.GELU(), nn.GELU(approximate="tanh")
NORM_BEFORE_THE_POOL = {
    "norm before the pool": lambda m: setattr(m, "config", replace(m.config, norm_after_pool=False))
}
# By whose model it is: what is done to ours.
FAULTS = {
    (timms, "vit"): {"q and k": swapped_q_and_k, "GELU": lambda m: put(m, MLP, activation=TANH)},
    (timms, "deit 3"): {"no layer scale": lambda m: [b.attention.scale.fill_(1) for b in m.blocks]},
    (timms, "dinov2"): {"epsilon": lambda m: put(m, nn.LayerNorm, eps=1e-5)},
    (timms, "dinov2 giant"): {"gates last": gates_last},
    (timms, "clip"): {"epsilon": lambda m: put(m, nn.LayerNorm, eps=1e-6), "GELU": lambda m: put(m, MLP, activation=EXACT)},
    (timms, "siglip"): {"GELU": lambda m: put(m, MLP, activation=EXACT)},
    (timms, "dinov2 with registers"): {"no registers": missing_registers, "registers last": registers_last},
    # Its head reads one token twice.
    (timms, "deit distilled"): {"class token alone": lambda m: setattr(m, "pooled", lambda x: x[:, [0, 0]].flatten(1))},
    (timms, "vit with a norm behind the mean"): NORM_BEFORE_THE_POOL,
    (timms, "siglip with a norm behind its pool"): NORM_BEFORE_THE_POOL,
    (timms, "dinov3"): {"no turns": lambda m: m.blocks[0].attention.rotation.sin.zero_(), "registers turned": registers_last},
    (timms, "eva02"): {"epsilon": lambda m: put(m.blocks[1].mlp, nn.LayerNorm, eps=1e-3), "gates last": gates_last},
    (timms, "perception encoder"): {"patches alone": lambda m: setattr(m, "reads_all", False)},
    (huggingfaces, "DINOv3ViTModel"): {"q and k": swapped_q_and_k},
    (huggingfaces, "Dinov2Model"): {"q and k": swapped_q_and_k},
    (huggingfaces, "Dinov2Model, giant"): {"gates last": gates_last},
    (huggingfaces, "Dinov2WithRegistersModel"): {"no registers": missing_registers},
    (huggingfaces, "CLIPVisionModel"): {"no norm before the blocks": lambda m: setattr(m.positions, "norm", nn.Identity())},
}  # fmt: skip


@pytest.mark.parametrize(("make", "name"), FAULTS, ids=[name for _, name in FAULTS])
def test_a_planted_fault_fails_the_comparison(make, name):
    theirs = make(name)
    ours, images = converted(theirs), pictures(theirs, 16)
    expected = observe(comparable(theirs), images)
    assert_same(observe(ours, images), expected)
    for fault in FAULTS[make, name].values():
        fault(faulty := copy.deepcopy(ours))
        with pytest.raises(AssertionError):
            assert_same(observe(faulty, images), expected)
