"""Encoder blocks, and the ViTs that are made of them."""

import pytest
import torch
from torch import nn

import minivit
from minivit import ViTConfig
from minivit.catalogue import replace_config
from minivit.families import build
from minivit.parts import local_mask, window_mask
from minivit.patches import grid_of
from minivit.stochastic_depth import StochasticDepth
from minivit.surgery import Zero
from minivit.variants import PostNormBlock
from minivit.vit import Block
from tests.minivit.test_hybrid import pictures
from tests.parity import draw
from tests.refusals import unchecked

X = torch.randn(2, 5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def block(kind=Block, **options):
    return draw(kind(12, 3, 20, **options).double().eval())


def torchs(ours, norm_first):
    """torch's own encoder layer with the same numbers."""
    layer = nn.TransformerEncoderLayer(
        12, 3, 20, 0.0, nn.functional.gelu, 1e-6, batch_first=True, norm_first=norm_first
    ).double()
    names = ["attention.qkv", "attention.out", "mlp.up", "mlp.down", "norm1", "norm2"]
    state = [p for n in names for p in ours.get_submodule(n).parameters()]
    layer.load_state_dict(dict(zip(layer.state_dict(), state, strict=True)))
    return layer


@pytest.mark.parametrize(("kind", "norm_first"), [(Block, True), (PostNormBlock, False)])
def test_a_block_equals_torchs_with_the_norm_before_or_after_with_a_mask_or_none(kind, norm_first):
    ours, torch_mask = block(kind), torch.ones(5, 5, dtype=torch.bool).triu(1)
    theirs = torchs(ours, norm_first)
    assert (theirs(X) - torchs(ours, not norm_first)(X)).abs().max() > 0.1
    torch.testing.assert_close(ours(X), theirs(X), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(ours(X, ~torch_mask), theirs(X, torch_mask), rtol=1e-11, atol=1e-11)


def test_stochastic_depth_drops_whole_images_and_keeps_the_mean():
    torch.manual_seed(0)
    layer, ones = torch.nn.Identity(), torch.ones(4000, 2, 3)
    layer.register_forward_hook(StochasticDepth(0.25))
    dropped = layer(ones)
    kept = dropped[:, 0, 0] != 0
    assert torch.equal(dropped, torch.where(kept[:, None, None], ones / 0.75, 0))
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.03)
    assert torch.equal(layer.eval()(ones), ones)


def test_dropout_acts_after_attention_alone():
    ours = block(dropout=0.5)
    ours.mlp = Zero()
    attended = ours.attention(ours.norm1(X))
    ours.train()
    torch.manual_seed(0)
    dropped = ours(X)
    torch.manual_seed(0)
    torch.testing.assert_close(dropped, X + nn.functional.dropout(attended, 0.5))
    assert (dropped == X).any() and not (dropped == X).all()


# Small, and with every number another.
SMALL = ViTConfig((12, 20), (4, 5), 2, 7, dim=24, depth=2, heads=3, mlp_ratio=1.5)


def made(seed=0, removed=(), **changes):
    """A small model that is random in every number: the head of an untrained one is zero."""
    model = build(replace_config(SMALL, changes), [(part, None) for part in removed])
    return draw(model.eval(), seed).requires_grad_()


VARIANTS = [
    *({"pool": pool, "positions": p} for pool in ("class", "mean", "attention")
      for p in ("learned", "sincos1d", "sincos2d")),
    *({"norm": norm} | around for norm in ("pre", "post")
      for around in ({"window": 2}, {"local": 3}, {"stem": "conv", "patch_size": 4})),
]  # fmt: skip
REMOVALS = [{"removed": parts, "pool": "mean"} for parts in (
    ["mlp", "norm2"], ["attention", "norm1"], ["norm"], ["norm", "mlp"], ["residual"], ["positions"],
)]  # fmt: skip


@pytest.mark.parametrize("changes", VARIANTS + REMOVALS, ids=str)
def test_variants_take_any_grid_and_pass_gradients_to_every_number(changes):
    model = made(**changes)
    for size in (12, 20), (8, 40):
        images = pictures(*size).requires_grad_()
        logits = model(images)
        assert logits.shape == (3, 7) and logits.std(0).min() > 1e-5
        model.zero_grad()
        logits.square().sum().backward()
        assert all(p.grad.any() for p in model.parameters())
        assert images.grad.flatten(2).any(-1).all()
        rows, columns = grid_of(size, model.config.patch_size)
        extra = model.class_token is not None
        assert model.tokens(images).shape == (3, extra + rows * columns, 24)


def test_one_block_carries_a_patch_to_those_that_may_attend_to_it_and_no_others():
    other = pictures()
    other[:, :, -4:, -5:] += 1  # the last patch
    window, local = window_mask((3, 4), 2), local_mask((3, 4), 3)
    for around, mask in (
        ({"window": 2}, window),
        ({"window": 2, "removed": ["residual"]}, window),
        ({"local": 3}, local),
        ({}, torch.ones_like(local)),
    ):
        model = made(pool="mean", depth=1, **around)
        moved = (model.tokens(other) - model.tokens(pictures())).abs().amax((0, 2)) > 1e-6
        assert torch.equal(moved, mask[:, -1])


def test_stochastic_depth_grows_linearly_from_the_first_block_to_the_last():
    for name, branches in ("vit_8px", ("attention", "mlp")), ("mixer_8px", ("mixing", "mlp")):
        for depth, rates in (5, [0, 0.05, 0.1, 0.15, 0.2]), (1, [0]):
            blocks = minivit.create(name, depth=depth, stochastic_depth=0.2).blocks
            for part in branches:
                hooks = [list(getattr(block, part)._forward_hooks.values()) for block in blocks]
                assert [hook[0].rate if hook else 0 for hook in hooks] == pytest.approx(rates)


@pytest.mark.full
def test_compilation_meets_no_graph_break():
    model = made(local=3)
    compiled = torch.compile(made(local=3), backend="eager", fullgraph=True)
    with unchecked():  # the checks of types are no part of the graph
        logits = compiled(pictures(16, 40))
    torch.testing.assert_close(logits, model(pictures(16, 40)))
