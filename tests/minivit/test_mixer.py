"""The Mixers compute what timm's, and what a feed-forward model written out here, compute."""

import copy
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
from minivit.mixer import FeedForwardBlock
from tests.parity import assert_same, draw, observe, pictures

# Small, and with every number another: 6 tokens, or 7 with the class token.
SMALL = MixerConfig((12, 10), (4, 5), 2, 7, dim=24, depth=2, mixing_hidden=11, mlp_ratio=1.5)
VARIANTS = [
    {},
    FEEDFORWARD,
    {"positions": "sincos2d"},
    {"removed": ["norm"]},
    {"removed": ["residual"]},
]

TIMM = [("stem.proj.", "patch_embedding.projection."), ("mlp_tokens.", "mixing."),
        ("mlp_channels.", "mlp."), ("fc1.", "up."), ("fc2.", "down.")]  # fmt: skip


def made(removed=(), **changes):
    """A small model that is random in every number."""
    model = build(dataclasses.replace(SMALL, **changes), [(part, None) for part in removed])
    return draw(model.double().eval())


def images(height=12, width=10, batch=3):
    g = torch.Generator().manual_seed(1)
    return torch.randn(batch, 2, height, width, generator=g, dtype=torch.float64)


# Tolstikhin et al.


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("depth", [2, pytest.param(12, marks=pytest.mark.full)])
def test_mixer_b_16_equals_timms_in_logits_tokens_and_gradients(dtype, depth):
    theirs = timms(dtype, depth)
    expected = observe(theirs, pictures(theirs))
    assert len(expected) == depth + 2
    assert_same(observe(from_timm(theirs), pictures(theirs)), expected)


@pytest.fixture(scope="module")
def compared():
    theirs = timms(torch.float64, 1)
    return from_timm(theirs), observe(theirs, pictures(theirs))


@pytest.fixture
def pair(compared):
    return copy.deepcopy(compared)


def norm_axis(model):
    tokens = F.layer_norm
    for block in model.blocks:
        block.norm1.forward = lambda x: tokens(x.mT, x.shape[1:2], eps=1e-6).mT


def order(model):
    for block in model.blocks:
        block.__class__ = FeedForwardBlock


def missing_bias(model):
    for block in model.blocks:
        block.mixing.up.bias = None  # that of `down` lifts whole tokens: no later norm sees it


def epsilon(model):
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-5


def approximate_gelu(model):
    for block in model.blocks:
        block.mixing.activation = nn.GELU(approximate="tanh")


FAULTS = [norm_axis, order, missing_bias, epsilon, approximate_gelu]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_fails_the_comparison_with_timm(pair, fault):
    ours, expected = pair
    observed = pictures(ours)
    assert_same(observe(ours, observed), expected)
    fault(ours)
    with pytest.raises(AssertionError, match="logits.*gradient"):
        assert_same(observe(ours, observed), expected)


# Melas-Kyriazi


def mlp(x, state, name):
    up, down = (
        [state[f"{name}.{layer}.{p}"] for p in ("weight", "bias")] for layer in ("up", "down")
    )
    return F.linear(F.gelu(F.linear(x, *up)), *down)


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
        names = f"blocks.{i}.norm1", f"blocks.{i}.norm2"

        def on_each_token(x, i=i, names=names):
            return x + mlp(layer_norm(x, s, names[0], eps), s, f"blocks.{i}.mlp")

        def across_tokens(x, i=i, names=names):
            x = x.transpose(1, 2)  # [batch, dim, tokens] to the end of the block
            y = (
                layer_norm(x, s, names[1], eps)
                if norm_of_tokens
                else F.layer_norm(x.mT, x.shape[1:2]).mT
            )
            return (x + mlp(y, s, f"blocks.{i}.mixing")).transpose(1, 2)

        steps = (on_each_token, across_tokens) if mlp_first else (across_tokens, on_each_token)
        for step in steps:
            x = step(x)
        seen[f"tokens {i}"] = x
    return F.linear(layer_norm(x, s, "norm", eps)[:, 0], s["head.weight"], s["head.bias"]), seen


def compare_feedforward(model, x, **faults):
    x = x.requires_grad_()
    logits, expected = feedforward(model, x, **faults)
    mix = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (gradient,) = torch.autograd.grad((logits * mix.to(logits.dtype)).sum(), x)
    expected = expected | {"logits": logits, "gradient": gradient}
    assert_same(observe(model, x.detach()), {k: v.detach() for k, v in expected.items()})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["feedforward_32px", "feedforward_b_16"])
def test_the_feedforward_model_equals_one_written_out(name, dtype):
    model = draw(minivit.create(name, depth=2).to(dtype).eval())
    side = model.config.image_size
    compare_feedforward(model, pictures(model, side))


@pytest.mark.parametrize(
    "fault", [{"norm_of_tokens": False}, {"mlp_first": False}, {"eps": 1e-5}], ids=str
)
def test_a_planted_fault_fails_the_comparison_with_the_model_written_out(fault):
    model = made(**FEEDFORWARD)
    compare_feedforward(model, images())
    with pytest.raises(AssertionError, match="logits.*gradient"):
        compare_feedforward(model, images(), **fault)


@pytest.mark.parametrize(
    ("name", "parameters"), [("mixer_b_16", 59.9e6), ("feedforward_b_16", 62e6)]
)
def test_models_have_the_sizes_that_the_papers_state(name, parameters):
    (entry,) = [entry for entry in minivit.models() if entry.name == name]
    assert entry.parameters == pytest.approx(parameters, rel=2e-3)


# Options


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_every_number_gets_a_gradient_and_every_pixel_counts(changes):
    model, x = made(**changes).requires_grad_(), images().requires_grad_()
    logits = model(x)
    assert logits.shape == (3, 7)
    logits.square().sum().backward()
    silent = {name for name, p in model.named_parameters() if p.grad.abs().max() < 1e-12}
    # The bias after the mixing shifts all features of a token alike, and norms over features undo it.
    blocks = [] if changes == {"removed": ["norm"]} else [1] if changes == FEEDFORWARD else [0, 1]
    assert silent == {f"blocks.{i}.mixing.down.bias" for i in blocks}
    assert x.grad.all()
    assert model.tokens(x).shape == (3, model.config.tokens, 24)


def test_without_residuals_and_norms_a_block_is_its_two_mlps_one_after_the_other():
    model = made(["norm", "residual"], depth=1)
    x, (block,) = model.patch_embedding(images()), model.blocks
    assert torch.equal(model.tokens(images()), block.mlp(block.mixing(x)))
    first = made(["norm", "residual"], depth=1, first="mlp")
    assert torch.equal(first.tokens(images()), block.mixing(block.mlp(x)))


def test_the_mixing_sees_each_channel_alone_and_the_mlp_each_token():
    (block, *_), x = made().blocks, torch.randn(1, 6, 24, dtype=torch.float64)
    changed = x.clone()
    changed[0, 2, 5] += 1
    assert (block.mixing(changed) != block.mixing(x)).nonzero()[:, 2].unique().tolist() == [5]
    assert (block.mlp(changed) != block.mlp(x)).nonzero()[:, 1].unique().tolist() == [2]


def test_stochastic_depth_and_dropout_act_in_training_alone():
    plain, dropped = made(), made(dropout=0.3, stochastic_depth=0.3)
    for part in "mixing", "mlp":
        first, last = (
            list(getattr(block, part)._forward_hooks.values()) for block in dropped.blocks
        )
        assert first == [] and last[0].rate == 0.3
    assert torch.equal(plain(images()), dropped(images()))
    dropped.train()
    assert not torch.equal(dropped(images()), dropped(images()))


def test_dropout_acts_inside_the_mixing_after_each_of_its_maps():
    mixing, x = made(dropout=0.5).blocks[0].mixing.train(), torch.randn(2, 6, 24).double()
    torch.manual_seed(0)
    dropped = mixing(x)
    torch.manual_seed(0)
    hidden = F.dropout(mixing.activation(mixing.up(x.mT)), 0.5)  # [batch, dim, mixing_hidden]
    assert (hidden == 0).any()
    torch.testing.assert_close(dropped, F.dropout(mixing.down(hidden), 0.5).mT)


@pytest.mark.parametrize("idle", ["mixing", "mlp"])
@pytest.mark.parametrize("first", ["mixing", "mlp"])
def test_stochastic_depth_leaves_out_each_branch_by_itself(first, idle):
    model = made(first=first, stochastic_depth=0.5)
    block, x = model.blocks[1], torch.randn(64, 6, 24).double()
    down = getattr(block, idle).down  # adds nothing: the other branch is seen alone
    down.weight.zero_(), down.bias.zero_()
    branch = block(x) - x
    torch.manual_seed(0)
    dropped = block.train()(x) - x
    out = (dropped == 0).all((1, 2))
    assert 16 < out.sum() < 48 and (branch != 0).any((1, 2)).all()
    torch.testing.assert_close(dropped[~out], 2 * branch[~out])


def test_recording_takes_the_mixers_names_and_says_that_there_is_no_attention():
    model = made()
    with minivit.record(model, "blocks.*.mixing", "blocks.1.mlp", "blocks.0") as seen:
        model(images())
    assert sorted(seen) == ["blocks.0", "blocks.0.mixing", "blocks.1.mixing", "blocks.1.mlp"]
    assert all(tensor.shape == (3, 6, 24) for tensor in seen.values())
    with (
        pytest.raises(
            LookupError, match=r"attention.weights', and nothing here looks like attention"
        ),
        minivit.record(model, "blocks.*.attention.weights"),
    ):
        model(images())
    with (
        pytest.raises(RuntimeError, match="what looks like attention here: nothing"),
        minivit.record(model, "blocks.*.mixing.weights"),
    ):
        model(images())
