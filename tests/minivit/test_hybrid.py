"""Hybrids are made of the blocks that they name, in that order, and of nothing else."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

import minivit
from minivit import Hybrid, HybridConfig, ResNet, ResNetConfig, ViT, ViTConfig
from minivit.hybrid import AttentionBlock, TokenBlock, alternate, to_map, to_tokens
from minivit.parts import window_mask
from minivit.resnet import BasicBlock
from minivit.vit import Block
from tests.parity import TOLERANCE, draw

NAMES = ["alternet_32px", "pit_32px", "hybrid_32px"]
KINDS = {"c": BasicBlock, "a": AttentionBlock, "t": TokenBlock}
# Small, and with every number another.
SMALL = HybridConfig((12, 20), 2, 7, stages=("c", "ca", "ac"), widths=(6, 12, 20), heads=(1, 3, 4))
PIT = {"stem": "patch", "patch_size": (3, 5), "stages": ("t", "tt", "t"), "widths": (6, 12, 24)}
BEHIND = {"stages": ("c", "cc", "tt"), "widths": (6, 12, 16)}
VARIANTS = [{}, PIT, BEHIND, {"window": 2}, {"stem": "7x7"}, {**BEHIND, "positions": "sincos2d"}]


def made(**changes):
    return draw(Hybrid(dataclasses.replace(SMALL, **changes)).eval())


def pictures(height=12, width=20, channels=2, batch=3):
    g = torch.Generator().manual_seed(1)
    return torch.randn(batch, channels, height, width, generator=g)


def close(ours, expected):
    assert expected.std() > 1e-2
    error = (ours - expected).abs().max() / expected.abs().max()
    assert error < TOLERANCE[expected.dtype]


# What is where


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_each_letter_is_a_block_of_its_kind_and_width(changes):
    model = made(**changes)
    c = model.config
    letters = [(kind, i) for i, stage in enumerate(c.stages) for kind in stage]
    assert [type(block) for block in model.blocks] == [KINDS[kind] for kind, _ in letters]
    for block, (kind, i) in zip(model.blocks, letters, strict=True):
        if kind != "c":
            assert (block.attention.out.in_features, block.attention.heads) == (
                c.widths[i],
                c.heads[i],
            )
        if kind == "t":
            assert block.mlp.up.out_features == 2 * c.widths[i]


def test_alternate_puts_attention_where_alternet_has_it():
    # num_blocks and num_blocks2 of alternet_50 in the authors' code
    assert alternate((3, 4, 6, 4), (0, 1, 2, 2)) == ("ccc", "ccca", "cccaca", "caca")
    assert alternate((2, 2, 2), (0, 0, 1)) == ("cc", "cc", "ca")
    assert minivit.create("alternet_32px").config.stages == ("cc", "ca", "ca")


@pytest.mark.parametrize("size", [(12, 20), (24, 10), (27, 15)])
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_maps_have_the_grid_of_their_stage_on_any_image(changes, size):
    model = made(**changes)
    c = dataclasses.replace(model.config, image_size=size)
    with minivit.record(model, "blocks.?") as seen:
        assert model(pictures(*size)).shape == (3, 7)
    stages = [i for i, stage in enumerate(c.stages) for _ in stage]
    assert len(seen) == len(stages)
    for block, i in enumerate(stages):
        assert seen[f"blocks.{block}"].shape == (3, c.widths[i], *c.grids[i])
    assert torch.equal(model.features(pictures(*size)), seen[f"blocks.{len(stages) - 1}"])


def test_grids_of_the_small_models_by_hand():
    grids = {name: minivit.create(name).config.grids for name in NAMES}
    assert grids["alternet_32px"] == [(32, 32), (16, 16), (8, 8)]
    assert grids["pit_32px"] == [(16, 16), (8, 8), (4, 4)]
    assert grids["hybrid_32px"] == [(32, 32), (16, 16), (8, 8), (8, 8)]
    assert dataclasses.replace(SMALL, stem="7x7", image_size=(225, 64)).grids == [
        (57, 16),
        (29, 8),
        (15, 4),
    ]


# What it computes


def test_with_convolutions_alone_it_is_the_resnet():
    resnet = draw(ResNet(ResNetConfig((12, 20), 2, 7, "3x3", "basic", (1, 2, 1), 6)).eval())
    hybrid = made(stages=("c", "cc", "c"), widths=(6, 12, 24))
    hybrid.load_state_dict(resnet.state_dict())
    close(hybrid(pictures()), resnet(pictures()))


def torchs(attention):
    """torch's attention with the numbers of ours."""
    twin = nn.MultiheadAttention(attention.out.in_features, attention.heads, batch_first=True)
    twin.in_proj_weight, twin.in_proj_bias = attention.qkv.weight, attention.qkv.bias
    twin.out_proj = attention.out
    return twin


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
    tokens, _ = torchs(block.attention)(tokens, tokens, tokens, attn_mask=mask)
    branch = norm(tokens.mT.unflatten(2, (rows, columns)), "norm2")
    close(block(x), (norm(pointwise(block.shortcut[0].weight), "shortcut.1") + branch).relu())


def test_a_token_block_is_the_encoders_on_every_place():
    token, encoder = draw(TokenBlock(6, 2, 10)), Block(6, 2, 10)
    encoder.load_state_dict(token.state_dict())
    x = pictures(3, 4, 6)
    tokens = torch.stack([x[:, :, i // 4, i % 4] for i in range(12)], 1)
    assert torch.equal(to_tokens(x), tokens) and torch.equal(to_map(tokens, 3), x)
    close(to_tokens(token(x)), encoder(tokens))


def test_pooled_stages_are_their_parts_in_a_row():
    model, images = made(**PIT).double(), pictures().double()
    x = F.conv2d(images, model.stem.projection.weight, model.stem.projection.bias, stride=(3, 5))
    x = x + rearrange(model.positions.table, "(r c) d -> d r c", r=4)  # [batch, 6, 4, 4]
    x = model.blocks[0](x)
    for pool, blocks in (1, model.blocks[1:3]), (2, model.blocks[3:]):
        weight, bias = model.transitions[pool].weight, model.transitions[pool].bias
        padded, before, halved = F.pad(x, (1, 1, 1, 1)), x.shape[1], x.shape[2] // 2
        x = torch.zeros(3, 2 * before, halved, halved).double()
        for channel in range(2 * before):  # two of each channel before
            for i in range(halved):
                for j in range(halved):
                    place = padded[:, channel // 2, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
                    x[:, channel, i, j] = (place * weight[channel, 0]).sum((1, 2)) + bias[channel]
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


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_gradients_reach_every_parameter(changes):
    model, images = made(**changes).train().requires_grad_(), pictures(27, 40).requires_grad_()
    model(images).square().sum().backward()
    assert all(p.grad.any() for p in model.parameters())
    assert images.grad.any()


def test_attention_weights_can_be_recorded_and_keep_to_their_windows():
    model = made(window=2)
    with minivit.record(model, "*.attention.weights") as seen:
        model(pictures())
    assert {name: tuple(w.shape) for name, w in seen.items()} == {
        "blocks.2.attention.weights": (3, 3, 60, 60),  # [batch, heads, 6 * 10 places, 6 * 10]
        "blocks.3.attention.weights": (3, 4, 15, 15),
    }
    for (name, weights), grid in zip(seen.items(), [(6, 10), (3, 5)], strict=True):
        assert torch.equal((weights > 0).all((0, 1)), window_mask(grid, 2)), name
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


# Sizes, names and files


def conv(before, after, side):
    """Parameters of a convolution with BatchNorm's scale and shift."""
    return before * after * side**2 + 2 * after


def basic(before, after):
    shortcut = conv(before, after, 1) if before != after else 0
    return conv(before, after, 3) + conv(after, after, 3) + shortcut


def attention(width):
    return 4 * width**2 + 4 * width


def encoder(width, hidden):
    return attention(width) + 2 * width * hidden + hidden + width + 4 * width


COUNTS = {
    # stem, blocks, head
    "alternet_32px": conv(3, 32, 3) + 2 * basic(32, 32)
    + basic(32, 64) + conv(64, 64, 1) + attention(64) + 2 * 64
    + basic(64, 128) + conv(128, 128, 1) + attention(128) + 2 * 128
    + 129 * 10,
    # embedding, positions, blocks, pooling, blocks, pooling, blocks, norm, head
    "pit_32px": 13 * 48 + 256 * 48 + 2 * encoder(48, 96)
    + 10 * 96 + 2 * encoder(96, 192)
    + 10 * 192 + 2 * encoder(192, 384) + 2 * 192 + 193 * 10,
    # stem, blocks, embedding, positions, blocks, norm, head
    "hybrid_32px": conv(3, 16, 3) + basic(16, 16) + basic(16, 32) + basic(32, 64)
    + 65 * 128 + 64 * 128 + 6 * encoder(128, 256) + 2 * 128 + 129 * 10,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_parameter_counts_follow_the_formula(name):
    assert sum(p.numel() for p in minivit.create(name).parameters()) == COUNTS[name]


def test_an_attention_block_has_the_place_of_a_convolution_block_and_all_else_stays():
    alternet = minivit.create("alternet_32px").state_dict()
    resnet = minivit.create("resnet_32px", width=32).state_dict()
    replaced = "blocks.3.", "blocks.5."
    kept = {k: t.shape for k, t in alternet.items() if not k.startswith(replaced)}
    assert kept == {k: t.shape for k, t in resnet.items() if not k.startswith(replaced)}


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_other_dtypes_and_counting_without_computing_work(changes):
    model, images = made(**changes), pictures(24, 20)
    expected = model(images)
    torch.testing.assert_close(model.double()(images.double()).float(), expected, rtol=1e-3, atol=1e-3)  # fmt: skip
    assert model.to("meta")(images.double().to("meta")).shape == (3, 7)
