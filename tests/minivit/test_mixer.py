"""The Mixers compute what timm's do, and the feed-forward model what it should."""

import pytest
import timm
import torch
import torch.nn.functional as F
from torch import nn

import minivit
from minivit.mixer import FeedForwardBlock, MixerBlock, Mixing
from tests.parity import DTYPES, check_faults, close, compare, draw, observe, pictures, put, random

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


# Melas-Kyriazi: the same maps, whose order test_surgery writes out.


@pytest.mark.parametrize("name", ["feedforward_32px", "feedforward_b_16"])
def test_the_feedforward_model_mixes_what_is_normed_over_the_tokens_and_does_so_last(name):
    model = draw(minivit.create(name, depth=1).double())
    block, x = model.blocks[0], random(3, *model.positions.table.shape)
    assert (model.config.first, model.config.pool) == ("mlp", "class")
    assert type(block.norm1) is type(model.norm) is nn.LayerNorm
    centred = x - x.mean(1, keepdim=True)
    normed = centred / (centred.square().mean(1, keepdim=True) + 1e-6).sqrt()
    expected = normed * block.norm2.weight[:, None] + block.norm2.bias[:, None]
    close(block.norm2(x), expected)


def test_dropout_acts_inside_the_mixing_after_each_of_its_maps_in_training_alone():
    model = draw(minivit.create("mixer_8px", dropout=0.5).double().eval())
    mixing, x = model.blocks[0].mixing, random(2, 16, 64)
    assert torch.equal(mixing(x), mixing(x))
    torch.manual_seed(0)
    dropped = mixing.train()(x)
    torch.manual_seed(0)
    hidden = F.dropout(mixing.activation(mixing.up(x.mT)), 0.5)  # [batch, dim, mixing_hidden]
    assert (hidden == 0).any()
    torch.testing.assert_close(dropped, F.dropout(mixing.down(hidden), 0.5).mT)
