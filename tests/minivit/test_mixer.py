"""The Mixers compute what timm's, and what a feed-forward model written out here, compute."""

import dataclasses

import pytest
import timm
import torch
import torch.nn.functional as F
from torch import nn

import minivit
from minivit import MixerConfig
from minivit.catalogue import FEEDFORWARD
from minivit.families import build
from minivit.mixer import FeedForwardBlock, MixerBlock, Mixing
from tests.parity import assert_same, check_faults, compare, draw, observe, pictures, put, random

# Small, and with every number another: 6 tokens, or 7 with the class token.
SMALL = MixerConfig((12, 10), (4, 5), 2, 7, dim=24, depth=2, mixing_hidden=11, mlp_ratio=1.5)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def made(removed=(), **changes):
    """A small model that is random in every number."""
    model = build(dataclasses.replace(SMALL, **changes), [(part, None) for part in removed])
    return draw(model.double().eval())


def images():
    return random(3, 2, 12, 10, seed=1)


# Tolstikhin et al.

TIMM = [("stem.proj.", "patch_embedding.projection."), ("mlp_tokens.", "mixing."),
        ("mlp_channels.", "mlp."), ("fc1.", "up."), ("fc2.", "down.")]  # fmt: skip


def from_timm(theirs):
    """timm's mixer_b16_224, or the first blocks of it, as minivit's."""
    state = {}
    for key, tensor in theirs.state_dict().items():
        for old, new in TIMM:
            key = key.replace(old, new)
        state[key] = tensor
    ours = minivit.create("mixer_b_16", depth=len(theirs.blocks)).to(tensor.dtype).eval()
    ours.load_state_dict(state)  # strict: every key is used
    return ours.requires_grad_(False)


def timms(dtype, depth):
    with torch.device("meta"):  # its own initialisation would take longer than the comparison
        model = timm.create_model("mixer_b16_224")
    model.blocks = model.blocks[:depth]
    return draw(model.to(dtype).to_empty(device="cpu").eval())


@DTYPES
@pytest.mark.parametrize("depth", [2, pytest.param(12, marks=pytest.mark.full)])
def test_mixer_b_16_equals_timms_in_logits_tokens_and_gradients(dtype, depth):
    theirs = timms(dtype, depth)
    compare(theirs, pictures(theirs), from_timm)


class NormOverTokens(nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x.mT, x.shape[1:2], eps=self.eps).mT


FAULTS = {
    "norm axis": lambda m: [put(block.norm1, nn.LayerNorm, __class__=NormOverTokens) for block in m.blocks],
    "order": lambda m: put(m, MixerBlock, __class__=FeedForwardBlock),
    # That of `down` lifts whole tokens: no later norm sees it.
    "missing bias": lambda m: [setattr(block.mixing.up, "bias", None) for block in m.blocks],
    "epsilon": lambda m: put(m, nn.LayerNorm, eps=1e-5),
    "approximate GELU": lambda m: put(m, Mixing, activation=nn.GELU(approximate="tanh")),
}  # fmt: skip


def test_a_planted_fault_fails_the_comparison_with_timm():
    theirs = timms(torch.float64, 1)
    images = pictures(theirs)
    check_faults(from_timm(theirs), images, observe(theirs, images), FAULTS)


# Melas-Kyriazi


def mlp(x, state, name):
    for layer in "up", "down":
        x = F.linear(x, state[f"{name}.{layer}.weight"], state[f"{name}.{layer}.bias"])
        x = F.gelu(x) if layer == "up" else x
    return x


def layer_norm(x, state, name, eps=1e-6):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return (x - mean) / (variance + eps).sqrt() * state[f"{name}.weight"] + state[f"{name}.bias"]


def feedforward(model, x, norm_of_tokens=True, mlp_first=True, eps=1e-6):
    """The feed-forward model written out: logits and the tokens after every block."""
    s, seen = model.state_dict(), {}
    kernel = s["patch_embedding.projection.weight"]
    patches = F.unfold(x, kernel.shape[2:], stride=kernel.shape[2:]).mT  # [batch, patches, c h w]
    x = patches @ kernel.flatten(1).T + s["patch_embedding.projection.bias"]
    x = torch.cat([s["class_token"].expand(len(x), 1, -1), x], 1) + s["positions.table"]
    for i in range(len(model.blocks)):
        for step in ["mlp", "mixing"] if mlp_first else ["mixing", "mlp"]:
            if step == "mlp":
                x = x + mlp(layer_norm(x, s, f"blocks.{i}.norm1", eps), s, f"blocks.{i}.mlp")
            else:
                y = layer_norm(x.mT, s, f"blocks.{i}.norm2", eps)  # [batch, dim, tokens]
                y = y if norm_of_tokens else F.layer_norm(x, x.shape[2:]).mT
                x = x + mlp(y, s, f"blocks.{i}.mixing").mT
        seen[f"tokens {i}"] = x
    return F.linear(layer_norm(x, s, "norm", eps)[:, 0], s["head.weight"], s["head.bias"]), seen


def compare_feedforward(model, x, **faults):
    x = x.requires_grad_()
    logits, expected = feedforward(model, x, **faults)
    mix = random(*logits.shape, seed=2).to(logits.dtype)
    (gradient,) = torch.autograd.grad((logits * mix).sum(), x)
    expected = expected | {"logits": logits, "gradient": gradient}
    assert_same(observe(model, x.detach()), {k: v.detach() for k, v in expected.items()})


@DTYPES
@pytest.mark.parametrize("name", ["feedforward_32px", "feedforward_b_16"])
def test_the_feedforward_model_equals_one_written_out(name, dtype):
    model = draw(minivit.create(name, depth=2).to(dtype).eval())
    compare_feedforward(model, pictures(model, model.config.image_size))


def test_a_planted_fault_fails_the_comparison_with_the_model_written_out():
    model = made(**FEEDFORWARD)
    compare_feedforward(model, images())
    for fault in {"norm_of_tokens": False}, {"mlp_first": False}, {"eps": 1e-5}:
        with pytest.raises(AssertionError, match="logits.*gradient"):
            compare_feedforward(model, images(), **fault)


def test_dropout_acts_inside_the_mixing_after_each_of_its_maps_in_training_alone():
    mixing, x = made(dropout=0.5).blocks[0].mixing, torch.randn(2, 6, 24).double()
    assert torch.equal(mixing(x), mixing(x))
    torch.manual_seed(0)
    dropped = mixing.train()(x)
    torch.manual_seed(0)
    hidden = F.dropout(mixing.activation(mixing.up(x.mT)), 0.5)  # [batch, dim, mixing_hidden]
    assert (hidden == 0).any()
    torch.testing.assert_close(dropped, F.dropout(mixing.down(hidden), 0.5).mT)
