"""What branches add to the stream and how it varies over positions, where that is known."""

import pytest
import torch

import minivit
from tests.parity import draw
from tests.vitlab.instruments.models import MODELS, Scaled, everybodys, images
from tests.vitlab.tried.by_hand import ends
from vitlab.instruments import branch_ratios, branch_variance
from vitlab.instruments.variance import variance_over_positions

N = 12  # patches


def test_a_constant_map_has_none_and_it_adds_up_with_the_mean_to_the_mean_square():
    x = torch.randn(3, N, 5, generator=torch.Generator().manual_seed(0))
    found = variance_over_positions(x)
    whole = x.double().square().mean((1, 2))
    torch.testing.assert_close(found + x.double().mean(1).square().mean(1), whole)
    assert torch.equal(variance_over_positions(x[:, :1].expand(-1, N, -1)), torch.zeros(3).double())


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_streams_and_branches_are_those_of_their_patches(name):
    model, pictures, _ = everybodys(name)
    blocks, extra = [MODELS[name][1].format(i) for i in range(2)], MODELS[name][3]
    found = branch_variance(model, pictures)
    parts = ends(model, pictures, [*blocks, *found.names])
    variances = {}
    for part, both in parts.items():
        variances[part] = [variance_over_positions(x[:, extra:]).mean() for x in both]
    assert len(found.names) == 4 and found.names[2] == f"{blocks[1]}.{MODELS[name][2]}"
    before, reads, branch, after = found.values
    for part, read, given in zip(found.names, reads, branch, strict=True):
        torch.testing.assert_close(torch.stack([read, given]), torch.stack(variances[part]))
    torch.testing.assert_close(before[2], variances[blocks[0]][1])
    torch.testing.assert_close(after[3], variances[blocks[1]][1], rtol=1e-5, atol=0)
    torch.testing.assert_close(after[:3], before[1:], rtol=1e-5, atol=0)
    assert (found.values <= found.mean_square).all()


def test_a_branch_that_is_a_multiple_of_the_skip_has_that_ratio():
    found = branch_ratios(Scaled(2, -0.5, 0.25), images())
    assert found.names == ("parts.0", "parts.1")  # the last sum goes into no module
    known = torch.tensor([[2.0], [0.5]]).expand(2, 12).double()
    torch.testing.assert_close(found.ratio, known, rtol=1e-6, atol=0)


ONE = {"depth": 1}
ORDERS = [  # and what the last branch skips: the input or the output of a module
    (lambda: minivit.create("mixer_8px", **ONE), ("blocks.0.mixing", "blocks.0.mlp"), "blocks.0.norm2", 0),
    (lambda: minivit.create("feedforward_8px", **ONE), ("blocks.0.mlp", "blocks.0.mixing"), "blocks.0.norm2", 0),
    (lambda: minivit.create("vit_8px", **ONE, norm="post"), ("blocks.0.attention", "blocks.0.mlp"), "blocks.0.norm1", 1),
    (lambda: minivit.remove(minivit.create("vit_8px", **ONE), "norm"), ("blocks.0.attention", "blocks.0.mlp"), "blocks.0.mlp", 0),
]  # fmt: skip


@pytest.mark.parametrize(("make", "names", "part", "end"), ORDERS)
def test_every_order_of_parts_and_norms_is_understood(make, names, part, end):
    model, pictures = draw(make()).eval(), torch.rand(2, 1, 8, 8)
    found = branch_ratios(model, pictures)
    assert found.names == names
    seen = ends(model, pictures, [part, names[-1]])
    skip, branch = (x.double().norm(dim=-1) for x in (seen[part][end], seen[names[-1]][1]))
    known = (branch / skip).mean(0)
    torch.testing.assert_close(found.ratio[-1], known, rtol=1e-5, atol=0)
