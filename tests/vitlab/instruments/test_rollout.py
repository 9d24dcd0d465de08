"""Rollouts of attention that is known, and of everybody's models by paths counted one by one."""

from functools import partial

import pytest
import torch

import minivit
from tests.refusals import assert_refused
from tests.vitlab.instruments.models import Known, images
from vitlab.instruments import rollout

N = 12


def stochastic(seed, tokens=N):
    w = torch.rand(2, tokens, tokens, generator=torch.Generator().manual_seed(seed))
    return w / w.sum(-1, keepdim=True)


@pytest.mark.parametrize("identity", [0, 0.3])
def test_heads_are_averaged_and_blocks_are_multiplied_the_last_one_leftmost(identity):
    weights = [stochastic(i) for i in range(3)]
    found = rollout(Known(*weights), images(1), identity=identity)
    a, b, c = ((1 - identity) * w.double().mean(0) + identity * torch.eye(N) for w in weights)
    for matrix, known in zip(found.matrices[:, 0], (a, b @ a, c @ b @ a), strict=True):
        torch.testing.assert_close(matrix, known, rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(matrix.sum(1), torch.ones(N).double())


def test_the_answer_is_read_from_the_class_token_or_from_the_mean():
    weights = torch.zeros(1, N + 2, N + 2)
    weights[0, :, 3], weights[0, 0], weights[0, 0, [0, 5, 13]] = 1, 0, 1  # the first: to 0, 5, 13
    found = rollout(Known(weights, extra=2), images(1), identity=0)
    assert (found.extra, found.grid) == (2, (3, 4))
    assert found.patches[0, 0].nonzero().flatten().tolist() == [3, 11]
    assert found.patches[0, 0, 3] == pytest.approx(0.5)
    mean = rollout(Known(weights[:, 2:, 2:]), images(1), identity=0).patches[0, 0]
    assert mean[1] == pytest.approx(1)  # to which all patches attend


def test_what_cannot_be_rolled_out_is_refused():
    cases = [
        ("mixer_32px", {}, "Mixer computes no attention between tokens"),
        ("resnet_32px", {}, "ResNet computes no attention"),
        ("pit_32px", {}, "the same tokens in all blocks"),
        ("vit_32px", {"identity": 1.5}, "from 0 to 1: got 1.5"),
    ]
    assert_refused(
        (partial(rollout, minivit.create(name), images(1, (32, 32)), **options), ValueError, said)
        for name, options, said in cases
    )
