"""The error of a mean prediction, and the cue that answers follow, where they are known."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.refusals import assert_refused
from vitlab.instruments import cue_conflict, ensemble, position_ensembles


def test_the_members_error_is_the_ensembles_and_the_spread():
    draws = torch.Generator().manual_seed(0)
    labels, p = torch.randint(3, (20,), generator=draws), torch.randn(7, 20, 3, generator=draws)
    result, targets = ensemble(p, labels), F.one_hot(labels, 3)
    by_hand = [[(p[m, i] - targets[i]).square().sum() for i in range(20)] for m in range(7)]
    assert result.member == pytest.approx(result.together + result.spread, rel=1e-12)
    assert result.member == pytest.approx(torch.tensor(by_hand).mean().item(), rel=1e-6)


def test_members_that_agree_gain_nothing_and_those_that_cancel_gain_all():
    labels = torch.tensor([1, 0])
    right = F.one_hot(labels, 2).double()
    same = ensemble((right + torch.tensor([[0.3, -0.1], [0.2, 0.4]])).repeat(2, 1, 1), labels)
    assert same.spread == 0 and same.member == same.together
    off = torch.tensor([[2.0, -1.0], [0.5, 3.0]])
    both = ensemble(torch.stack([right + off, right - off]), labels)
    assert both.together == 0 and both.spread == both.member == pytest.approx(14.25 / 2)
    assert both.together_accuracy == 1 and both.accuracy == 0.5


def test_positions_that_show_the_class_are_read_and_others_are_not():
    """Images whose left half shows the class, in a network that is one convolution."""
    labels = torch.arange(300) % 3
    images = torch.randn(300, 3, 4, 8, generator=torch.Generator().manual_seed(1)) * 0.1
    images[:, :, :, :4] += F.one_hot(labels, 3)[:, :, None, None]
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 4, 4))
    torch.nn.init.dirac_(net[0].weight)
    net[0].bias.data[:] = torch.tensor([0.0, 5.0, -2.0])
    sides = (images[:200], labels[:200]), (images[200:], labels[200:])
    result = position_ensembles(net, *sides, "0", batch_size=70)["0"]
    # One of two positions knows; the mean of both still leans to the right class.
    assert result.together_accuracy == 1 and 0.6 < result.accuracy < 0.75
    assert result.member == pytest.approx(result.together + result.spread, rel=1e-9)
    assert result.spread > 0.05


def test_answers_are_counted_where_the_cues_disagree():
    shapes = torch.tensor([0, 1, 2, 3, 4, 4])
    textures = torch.tensor([1, 1, 0, 0, 0, 0])  # the second image has no conflict
    counts = cue_conflict(torch.tensor([0, 1, 2, 0, 3, 4]), shapes, textures)
    assert (counts.shape, counts.texture, counts.neither, counts.share) == (3, 1, 1, 0.75)
    assert math.isnan(cue_conflict(torch.full((6,), -1), shapes, textures).share)
    assert_refused([(lambda: cue_conflict(shapes, shapes, shapes), ValueError, "disagree")])
