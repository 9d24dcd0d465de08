"""Hybrids are made of the blocks that they name, in that order, and of nothing else."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

import minivit
from minivit import Hybrid, HybridConfig, ResNet, ResNetConfig, ViT, ViTConfig
from minivit.hybrid import AttentionBlock, TokenBlock, alternate
from minivit.parts import window_mask
from minivit.resnet import BasicBlock
from tests.parity import close, draw, random

KINDS = {"c": BasicBlock, "a": AttentionBlock, "t": TokenBlock}
# Small, and with every number another.
SMALL = HybridConfig((12, 20), 2, 7, stages=("c", "ca", "ac"), widths=(6, 12, 20), heads=(1, 3, 4))
PIT = {"stem": "patch", "patch_size": (3, 5), "stages": ("t", "tt", "t"), "widths": (6, 12, 24)}
BEHIND = {"stages": ("c", "cc", "tt"), "widths": (6, 12, 16)}
VARIANTS = [{}, PIT, BEHIND, {"window": 2}, {"stem": "7x7"}, {**BEHIND, "positions": "sincos2d"}]


def made(**changes):
    return draw(Hybrid(dataclasses.replace(SMALL, **changes)).eval())


def pictures(height=12, width=20, channels=2):
    return random(3, channels, height, width, seed=1).float()


def test_alternate_puts_attention_where_alternet_has_it():
    # num_blocks and num_blocks2 of alternet_50 in the authors' code
    assert alternate((3, 4, 6, 4), (0, 1, 2, 2)) == ("ccc", "ccca", "cccaca", "caca")
    assert alternate((2, 2, 2), (0, 0, 1)) == ("cc", "cc", "ca")
    assert minivit.create("alternet_32px").config.stages == ("cc", "ca", "ca")


@pytest.mark.parametrize("size", [(12, 20), (24, 10), (27, 15)])
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_blocks_have_their_kind_and_maps_the_grid_of_their_stage_on_any_image(changes, size):
    model, images = made(**changes).requires_grad_(), pictures(*size).requires_grad_()
    c = dataclasses.replace(model.config, image_size=size)
    with minivit.record(model, "blocks.?") as seen:
        logits = model(images)
    letters = [(kind, i) for i, stage in enumerate(c.stages) for kind in stage]
    assert [type(block) for block in model.blocks] == [KINDS[kind] for kind, _ in letters]
    assert len(seen) == len(letters)
    for block, (kind, i), maps in zip(model.blocks, letters, seen.values(), strict=True):
        assert maps.shape == (3, c.widths[i], *c.grids[i])
        if kind != "c":
            assert block.attention.heads == c.heads[i]
    assert torch.equal(model.features(images), list(seen.values())[-1])
    logits.square().sum().backward()
    assert all(p.grad.any() for p in model.parameters()) and images.grad.any()


def test_with_convolutions_alone_it_is_the_resnet():
    resnet = draw(ResNet(ResNetConfig((12, 20), 2, 7, "3x3", "basic", (1, 2, 1), 6)).eval())
    hybrid = made(stages=("c", "cc", "c"), widths=(6, 12, 24))
    hybrid.load_state_dict(resnet.state_dict())
    close(hybrid(pictures()), resnet(pictures()), 1e-5)


@pytest.mark.parametrize(("stride", "window"), [(1, None), (2, None), (1, 2), (2, 3)])
@pytest.mark.parametrize("training", [True, False])
def test_an_attention_block_is_its_formula(stride, window, training):
    block = draw(AttentionBlock(6, 12, stride, 3, window).train(training))
    x, state = pictures(7, 5, 6), block.state_dict()

    def norm(y, name):
        mean, variance = state[f"{name}.running_mean"], state[f"{name}.running_var"]
        if training:
            mean, variance = y.mean((0, 2, 3)), y.var((0, 2, 3), correction=0)
        y = (y - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
        return y * state[f"{name}.weight"][:, None, None] + state[f"{name}.bias"][:, None, None]

    def pointwise(weight):  # a 1 x 1 convolution, by hand
        return torch.einsum("oi, bihw -> bohw", weight[:, :, 0, 0], x[:, :, ::stride, ::stride])

    y = norm(pointwise(block.conv.weight), "norm1").relu()
    rows, columns = y.shape[2:]
    mask = None if window is None else ~window_mask((rows, columns), window)
    tokens = y.flatten(2).mT
    own, torchs = block.attention, nn.MultiheadAttention(12, 3, batch_first=True)
    torchs.in_proj_weight, torchs.in_proj_bias = own.qkv.weight, own.qkv.bias
    torchs.out_proj = own.out
    tokens, _ = torchs(tokens, tokens, tokens, attn_mask=mask)
    branch = norm(tokens.mT.unflatten(2, (rows, columns)), "norm2")
    shortcut = norm(pointwise(block.shortcut[0].weight), "shortcut.1")
    close(block(x), (shortcut + branch).relu(), 1e-5)


def test_pooled_stages_are_their_parts_in_a_row():
    model, images = made(**PIT).double(), pictures().double()
    x = F.conv2d(images, model.stem.projection.weight, model.stem.projection.bias, stride=(3, 5))
    x = x + rearrange(model.positions.table, "(r c) d -> d r c", r=4)  # [batch, 6, 4, 4]
    x = model.blocks[0](x)
    for pool, blocks in (1, model.blocks[1:3]), (2, model.blocks[3:]):
        weight, bias = model.transitions[pool].weight, model.transitions[pool].bias
        places = F.unfold(x, 3, padding=1, stride=2).unflatten(1, (-1, 9))
        twice = places.repeat_interleave(2, 1)  # two of each channel before
        x = torch.einsum("bckp,ck->bcp", twice, weight.flatten(1)) + bias[:, None]
        x = x.unflatten(2, (math.isqrt(x.shape[2]), -1))
        for block in blocks:
            x = block(x)
    x = F.layer_norm(x.flatten(2).mT, [24], model.norm.weight, model.norm.bias, eps=1e-6)
    close(model(images), model.head(x.mean(1)))


def test_the_hybrid_of_a_resnet_and_a_vit_is_the_one_before_the_other():
    model, images = made(**BEHIND).double(), pictures().double()
    resnet = ResNet(ResNetConfig((12, 20), 2, 7, "3x3", "basic", (1, 2), 6)).eval()
    vit = ViT(ViTConfig((6, 10), 1, 12, 7, 16, 2, 4, 2, pool="mean")).eval().double()
    blocks, places = model.blocks, {f"blocks.{i}.": f"blocks.{3 + i}." for i in range(2)}
    resnet.stem, resnet.blocks = model.stem, blocks[:3]
    for key, tensor in vit.state_dict().items():
        key = key.replace("patch_embedding.projection", "transitions.2")
        tensor.copy_(model.state_dict()[places.get(key[:9], key[:9]) + key[9:]])
    close(model(images), vit(resnet.features(images)))
