import pytest
import torch
from torch import nn

from minivit.stochastic_depth import StochasticDepth, add_stochastic_depth
from minivit.surgery import NoResidualBlock, Zero
from minivit.variants import PostNormBlock
from minivit.vit import MLP, Block, MultiHeadAttention

X = torch.randn(2, 5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def block(kind=Block, **options):
    torch.manual_seed(0)
    made = kind(12, 3, 20, **options).double().eval()
    for p in made.parameters():
        nn.init.normal_(p, std=0.5)
    return made


def torchs(ours, norm_first):
    """torch's own encoder layer with the same numbers."""
    layer = nn.TransformerEncoderLayer(
        12, 3, 20, 0.0, nn.functional.gelu, 1e-6, batch_first=True, norm_first=norm_first
    ).double()
    names = ["attention.qkv", "attention.out", "mlp.up", "mlp.down", "norm1", "norm2"]
    state = [p for n in names for p in ours.get_submodule(n).parameters()]
    layer.load_state_dict(dict(zip(layer.state_dict(), state, strict=True)))
    return layer


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_equals_torchs_with_the_norm_before_or_after(norm):
    ours = block(Block if norm == "pre" else PostNormBlock)
    expected = torchs(ours, norm == "pre")(X)
    other = torchs(ours, norm == "post")(X)
    assert (expected - other).abs().max() > 0.1
    torch.testing.assert_close(ours(X), expected, rtol=1e-11, atol=1e-11)


def test_without_residuals_a_block_is_its_sub_layers_one_after_the_other():
    ours = NoResidualBlock(block())
    expected = ours.mlp(ours.norm2(ours.attention(ours.norm1(X))))
    assert torch.equal(ours(X), expected)
    behind = NoResidualBlock(block(PostNormBlock))
    expected = behind.norm2(behind.mlp(behind.norm1(behind.attention(X))))
    assert torch.equal(behind(X), expected)


def test_a_mask_reaches_the_attention():
    ours, alone = block(), torch.eye(5, dtype=torch.bool)
    changed = X.clone()
    changed[:, 1:] *= -1  # not a constant added: LayerNorm would not see it
    assert torch.equal(ours(X, alone)[:, 0], ours(changed, alone)[:, 0])
    assert not torch.allclose(ours(X)[:, 0], ours(changed)[:, 0])


def test_the_gelu_is_the_exact_one():
    mlp = MLP(1, 1).double()
    for layer in (mlp.up, mlp.down):
        nn.init.ones_(layer.weight)
        nn.init.zeros_(layer.bias)
    x = torch.linspace(-3, 3, 13, dtype=torch.float64)[:, None]
    expected = x * 0.5 * (1 + torch.erf(x / 2**0.5))
    torch.testing.assert_close(mlp(x), expected, rtol=1e-14, atol=1e-14)


def test_stochastic_depth_drops_whole_images_and_keeps_the_mean():
    torch.manual_seed(0)
    layer, ones = torch.nn.Identity(), torch.ones(4000, 2, 3)
    layer.register_forward_hook(StochasticDepth(0.25))
    dropped = layer(ones)
    kept = dropped[:, 0, 0] != 0
    assert torch.equal(dropped, torch.where(kept[:, None, None], ones / 0.75, 0))
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.03)
    assert torch.equal(layer.eval()(ones), ones)


@pytest.mark.parametrize("kind", [Block, PostNormBlock])
def test_stochastic_depth_leaves_sub_layers_of_a_block_out_for_some_images(kind):
    ours = block(kind).train()
    ours.norm1, ours.norm2 = (
        (nn.Identity(), nn.Identity()) if kind is PostNormBlock else (ours.norm1, ours.norm2)
    )
    add_stochastic_depth(nn.ModuleList([block(kind), ours]), 0.5)
    torch.manual_seed(0)
    outputs = ours(X[:1].expand(200, -1, -1))
    untouched = (outputs == X[:1]).all(-1).all(-1).float().mean().item()
    assert untouched == pytest.approx(0.25, abs=0.1)  # both of two sub-layers left out


def test_dropout_acts_after_attention_alone():
    ours = block(dropout=0.5).train()
    ours.mlp = Zero()
    attended = ours.attention.eval()(ours.norm1(X))
    ours.train()
    torch.manual_seed(0)
    dropped = ours(X)
    torch.manual_seed(0)
    torch.testing.assert_close(dropped, X + nn.functional.dropout(attended, 0.5))
    assert (dropped == X).any() and not (dropped == X).all()


def test_a_block_is_initialised_as_torchvisions():
    torch.manual_seed(0)
    made = Block(64, 4, 128)
    attention: MultiHeadAttention = made.attention
    torchs = nn.MultiheadAttention(64, 4)
    assert not attention.qkv.bias.any() and not attention.out.bias.any()
    pairs = [
        (attention.qkv.weight, torchs.in_proj_weight),
        (attention.out.weight, torchs.out_proj.weight),
        (made.mlp.up.weight, nn.init.xavier_uniform_(torch.empty(128, 64))),
    ]
    for ours, theirs in pairs:
        assert ours.std().item() == pytest.approx(theirs.std().item(), rel=0.05)
        assert ours.abs().max().item() == pytest.approx(theirs.abs().max().item(), rel=0.02)
    assert 0 < made.mlp.up.bias.abs().max() < 1e-5
