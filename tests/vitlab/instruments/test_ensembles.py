"""The error of a mean prediction, against its identity and predictions that are known."""

import pytest
import torch
import torch.nn.functional as F

import minivit
from vitlab.instruments import ensemble, position_ensembles


def test_the_members_error_is_the_ensembles_and_the_spread():
    draws = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (20,), generator=draws)
    p = torch.randn(7, 20, 3, generator=draws)
    found = ensemble(p, labels)
    assert found.member == pytest.approx(found.together + found.spread, rel=1e-12)
    targets = F.one_hot(labels, 3)
    by_hand = [[(p[m, i] - targets[i]).square().sum() for i in range(20)] for m in range(7)]
    assert found.member == pytest.approx(torch.tensor(by_hand).mean().item(), rel=1e-6)


def test_members_that_agree_gain_nothing_and_those_that_cancel_gain_all():
    labels = torch.tensor([1, 0])
    right = F.one_hot(labels, 2).double()
    one = right + torch.tensor([[0.3, -0.1], [0.2, 0.4]])
    same = ensemble(torch.stack([one, one]), labels)
    assert same.spread == 0 and same.member == same.together
    off = torch.tensor([[2.0, -1.0], [0.5, 3.0]])
    both = ensemble(torch.stack([right + off, right - off]), labels)
    assert both.together == 0 and both.spread == both.member == pytest.approx(14.25 / 2)
    assert both.together_accuracy == 1 and both.accuracy == 0.5


def test_positions_that_show_the_class_are_read_and_others_are_not():
    """Images whose left half shows the class, in a network that is one convolution."""
    draws = torch.Generator().manual_seed(1)
    labels = torch.arange(300) % 3
    images = torch.randn(300, 3, 4, 8, generator=draws) * 0.1
    images[:, :, :, :4] += F.one_hot(labels, 3)[:, :, None, None]
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 4, 4))
    torch.nn.init.dirac_(net[0].weight)
    net[0].bias.data[:] = torch.tensor([0.0, 5.0, -2.0])
    sides = (images[:200], labels[:200]), (images[200:], labels[200:])
    found = position_ensembles(net, *sides, "0")["0"]
    # One of two positions knows; the mean of both still leans to the right class.
    assert found.together_accuracy == 1 and 0.6 < found.accuracy < 0.75
    assert found.member == pytest.approx(found.together + found.spread, rel=1e-9)
    assert found.spread > 0.05


def test_batches_do_not_matter():
    model = minivit.load("digits_vit")
    images = torch.randn(40, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    sides = (images[:30], torch.arange(30) % 10), (images[30:], torch.arange(10))
    found, again = (
        position_ensembles(model, *sides, "blocks.?", batch_size=size) for size in (40, 7)
    )
    assert list(found) == [f"blocks.{i}" for i in range(4)]
    for name in found:
        assert found[name].member == pytest.approx(again[name].member, rel=1e-6)
