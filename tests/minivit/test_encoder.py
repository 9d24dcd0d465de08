import pytest
import torch
from torch import nn

from minivit.stochastic_depth import StochasticDepth
from minivit.surgery import Zero
from minivit.variants import PostNormBlock
from minivit.vit import Block
from tests.parity import draw

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
