"""Branches and skips of everybody's models, against the sums they are made of."""

import pytest
import torch
from torch import nn

import minivit
from tests.parity import draw
from tests.vitlab.instruments.models import DIM, Scaled, images
from vitlab.instruments import branch_ratios


def test_a_branch_that_is_a_multiple_of_the_skip_has_that_ratio():
    found = branch_ratios(Scaled(2, -0.5, 0.25), images())
    assert found.names == ("parts.0", "parts.1")  # the last sum goes into no module
    known = torch.tensor([[2.0], [0.5]]).expand(2, 12).double()
    torch.testing.assert_close(found.ratio, known, rtol=1e-6, atol=0)
    torch.testing.assert_close(found.skip[1], 3 * found.skip[0], rtol=1e-6, atol=0)
    torch.testing.assert_close(found.branch, found.skip * known, rtol=1e-6, atol=0)


def without_norms():
    return minivit.remove(minivit.create("vit_8px", depth=2), "norm")


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: minivit.create("mixer_8px", depth=2), ("mixing", "mlp")),
        (lambda: minivit.create("feedforward_8px", depth=2), ("mlp", "mixing")),
        (lambda: minivit.create("vit_8px", depth=2, norm="post"), ("attention", "mlp")),
        (without_norms, ("attention", "mlp")),
    ],
)
def test_every_order_of_parts_and_norms_is_understood(make, parts):
    found = branch_ratios(draw(make()), torch.rand(2, 1, 8, 8))
    assert found.names == tuple(f"blocks.{i}.{part}" for i in range(2) for part in parts)


class Shortcut(nn.Module):
    """Calls an identity on the way of the skip, after its branch: so does timm's ConvNeXt."""

    def __init__(self):
        super().__init__()
        self.embed, self.mlp = nn.Conv2d(3, DIM, 8, 8), nn.Linear(DIM, DIM)
        self.drop, self.shortcut = nn.Identity(), nn.Identity()

    def forward(self, images):
        x = self.embed(images).flatten(2).mT
        return self.drop(self.mlp(x)) + self.shortcut(x)


def test_an_identity_on_the_way_of_the_skip_is_not_taken_for_the_branch():
    assert branch_ratios(Shortcut(), images()).names == ("mlp",)
