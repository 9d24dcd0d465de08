"""What from_timm and from_huggingface make computes what theirs does, and a fault would be seen."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.foreign import EVERY, REPRESENTATIVE, comparable, converted, huggingfaces, timms
from tests.parity import assert_same, observe, pictures, unseen


@pytest.mark.parametrize(("make", "name"), EVERY, ids=[name for _, name in EVERY])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_logits_tokens_and_gradients_are_equal(make, name, dtype):
    theirs = make(name, dtype)
    images = pictures(theirs, 16, batch=2)
    expected = observe(comparable(theirs), images)
    assert len(expected) == 4  # of two blocks, logits and gradient
    assert_same(observe(converted(theirs), images), expected)


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


def missing_layer_scale(model):
    for block in model.blocks:
        block.attention.scale.fill_(1)


def another_epsilon(model):
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = 1e-5 if part.eps == 1e-6 else 1e-6


def another_gelu(model):
    for block in model.blocks:
        exact = type(block.mlp.activation) is nn.GELU and block.mlp.activation.approximate == "none"
        block.mlp.activation = nn.GELU(approximate="tanh" if exact else "none")


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


def missing_norm_before_the_blocks(model):
    model.positions.norm = nn.Identity()


def class_token_alone(model):
    """The head of a distilled DeiT reads one token twice."""
    model.pooled = lambda x: x[:, [0, 0]].flatten(1)


def norm_before_the_pool(model):
    model.config = replace(model.config, norm_after_pool=False)


FAULTS = [
    (timms, "vit", swapped_q_and_k),
    (huggingfaces, "Dinov2Model", swapped_q_and_k),
    (timms, "deit 3", missing_layer_scale),
    (timms, "dinov2", another_epsilon),
    (timms, "dinov2 giant", gates_last),
    (huggingfaces, "Dinov2Model, giant", gates_last),
    (timms, "clip", another_epsilon),
    (timms, "vit", another_gelu),
    (timms, "clip", another_gelu),
    (timms, "siglip", another_gelu),
    (timms, "dinov2 with registers", missing_registers),
    (huggingfaces, "Dinov2WithRegistersModel", missing_registers),
    (timms, "dinov2 with registers", registers_last),
    (huggingfaces, "CLIPVisionModel", missing_norm_before_the_blocks),
    (timms, "deit distilled", class_token_alone),
    (timms, "vit with a norm behind the mean", norm_before_the_pool),
    (timms, "siglip with a norm behind its pool", norm_before_the_pool),
]


@pytest.mark.parametrize(
    ("make", "name", "fault"), FAULTS, ids=[f"{name}, {f.__name__}" for _, name, f in FAULTS]
)
def test_a_planted_fault_fails_the_comparison(make, name, fault):
    theirs = make(name)
    ours, images = converted(theirs), pictures(theirs, 16)
    expected = observe(comparable(theirs), images)
    assert_same(observe(ours, images), expected)
    faulty = copy.deepcopy(ours)
    fault(faulty)
    with pytest.raises(AssertionError):
        assert_same(observe(faulty, images), expected)
