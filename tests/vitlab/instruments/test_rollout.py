"""Rollouts of attention that is known, and relevance where the cause was planted."""

from functools import partial

import pytest
import torch
from torch import nn

import minivit
from tests.parity import draw
from tests.refusals import assert_refused
from tests.vitlab.instruments.models import Known, SharedBlock, images
from vitlab.instruments import relevance, rollout

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


PATCH, OTHER = 5, 7


class Looking(nn.Module):
    """Attention with given weights, in which each head carries a channel of its own."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows  # [heads, tokens, tokens]

    def forward(self, x):
        weights = self.rows.log().expand(len(x), -1, -1, -1).softmax(-1)
        return x + (weights @ x.mT[..., None])[..., 0].mT


class Planted(nn.Module):
    """Both channels of a patch are its mean; those of the class token, one with minus, the logits."""

    def __init__(self, *rows):
        super().__init__()
        self.embed = nn.Conv2d(1, 2, 8, 8, bias=False)
        self.embed.weight.data.fill_(1 / 64)
        self.blocks = nn.ModuleList(map(Looking, rows))

    def forward(self, x):
        patches = self.embed(x).flatten(2).mT
        x = torch.cat([torch.zeros_like(patches[:, :1]), patches], 1)
        for block in self.blocks:
            x = block(x)
        return x[:, 0] * torch.tensor([1.0, -1.0])


def looking(query, *at):
    """Weights with which one query of each head looks at a token, and all others at themselves."""
    rows = torch.eye(N + 1).expand(len(at), -1, -1).clone()
    for head, token in enumerate(at):
        rows[head, query] = 0
        rows[head, query, token] = 1
    return rows


PICTURES = torch.rand(2, 1, 24, 32, generator=torch.Generator().manual_seed(0)) + 0.5
MEANS = nn.functional.avg_pool2d(PICTURES, 8).flatten(1).double()


def of_class(model, number):
    return relevance(model, PICTURES, torch.full((2,), number)).patches[-1]


def test_the_patch_on_which_the_logit_depends_is_found_where_rollout_finds_two():
    model = Planted(looking(0, 1 + PATCH, 1 + OTHER))
    known = torch.zeros(2, N, dtype=torch.float64)
    known[:, PATCH] = MEANS[:, PATCH] / 2  # a weight of 1 times its slope, in one of two heads
    torch.testing.assert_close(of_class(model, 0), known, rtol=1e-5, atol=0)
    found = rollout(model, PICTURES)
    assert (found.grid, found.extra) == ((3, 4), 1)
    assert found.patches[0, 0].nonzero().flatten().tolist() == [PATCH, OTHER]
    assert of_class(model, 1).abs().max() == 0  # all attention speaks against it


def test_blocks_carry_on_what_others_have_carried():
    """The class token looks at a patch that has looked at another."""
    model = Planted(looking(1 + PATCH, 1 + OTHER, 1 + OTHER), looking(0, 1 + PATCH, 1 + PATCH))
    both, other = MEANS[:, PATCH] + MEANS[:, OTHER], MEANS[:, OTHER]
    known = torch.zeros(2, N, dtype=torch.float64)
    known[:, PATCH] = both / 2
    known[:, OTHER] = both / 2 * other / 2
    torch.testing.assert_close(of_class(model, 0), known, rtol=1e-5, atol=0)


def test_what_has_no_rollout_or_relevance_is_refused():
    model, x = draw(minivit.create("vit_8px")), torch.rand(2, 1, 8, 8)
    pit = minivit.create("pit_32px")
    shared = Known(torch.eye(N)[None])
    shared.blocks[0] = SharedBlock(torch.eye(N)[None])
    assert_refused([
        *((partial(call, minivit.create("mixer_8px"), x), ValueError, "Mixer computes no attention between tokens") for call in (rollout, relevance)),
        *((partial(call, pit, images(1, (32, 32))), ValueError, "the same tokens in all blocks") for call in (rollout, relevance)),
        (partial(rollout, model, x, identity=1.5), ValueError, "from 0 to 1: got 1.5"),
        (partial(relevance, shared, images()), ValueError, r"\[2, 1, 12, 12\] for 2 images: got \[1, 1, 12, 12\]; give one"),
        (partial(relevance, model, x, torch.tensor([0])), ValueError, "a class below 10 for each of 2 images"),
        (partial(relevance, model, x.byte()), (TypeError, ValueError), "expected images of"),
    ])  # fmt: skip
