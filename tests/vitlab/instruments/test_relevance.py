"""Relevance where the cause was planted, and in everybody's models by the rule's own terms."""

from functools import partial

import pytest
import torch
from torch import nn

import minivit
from tests.parity import draw
from tests.refusals import assert_refused
from tests.vitlab.instruments.models import (
    DEPTH,
    HEADS,
    MODELS,
    Known,
    SharedBlock,
    everybodys,
    images,
)
from tests.vitlab.instruments.test_tokens import logits
from vitlab.instruments import relevance, rollout

N = 12
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


@pytest.fixture
def pictures():
    return torch.rand(2, 1, 24, 32, generator=torch.Generator().manual_seed(0)) + 0.5


@pytest.fixture
def means(pictures):
    return nn.functional.avg_pool2d(pictures, 8).flatten(1).double()


def of_class(model, pictures, number):
    return relevance(model, pictures, torch.full((2,), number)).patches[-1]


def test_the_patch_on_which_the_logit_depends_is_found_where_rollout_finds_two(pictures, means):
    model = Planted(looking(0, 1 + PATCH, 1 + OTHER))
    known = torch.zeros(2, N, dtype=torch.float64)
    known[:, PATCH] = means[:, PATCH] / 2  # a weight of 1 times its slope, in one of two heads
    torch.testing.assert_close(of_class(model, pictures, 0), known, rtol=1e-5, atol=0)
    found = rollout(model, pictures)
    assert (found.grid, found.extra) == ((3, 4), 1)
    assert found.patches[0, 0].nonzero().flatten().tolist() == [PATCH, OTHER]
    assert of_class(model, pictures, 1).abs().max() == 0  # all attention speaks against it


def test_blocks_carry_on_what_others_have_carried(pictures, means):
    """The class token looks at a patch that has looked at another."""
    model = Planted(looking(1 + PATCH, 1 + OTHER, 1 + OTHER), looking(0, 1 + PATCH, 1 + PATCH))
    both, other = means[:, PATCH] + means[:, OTHER], means[:, OTHER]
    known = torch.zeros(2, N, dtype=torch.float64)
    known[:, PATCH] = both / 2
    known[:, OTHER] = both / 2 * other / 2
    torch.testing.assert_close(of_class(model, pictures, 0), known, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_models_by_differences_in_single_weights(name):
    """Slopes by putting in attention weights that are a little larger; then the paper's sum."""
    model, pictures, _ = everybodys(name)
    model, pictures = model.double(), pictures[:1].double()
    found = relevance(model, pictures)
    which = logits(model, pictures).argmax(1)
    names = [f"{MODELS[name][1].format(i)}.{MODELS[name][2]}.weights" for i in range(DEPTH)]
    with minivit.record(model, *names) as seen:
        model(pictures)
    tokens = seen[names[0]].shape[-1]
    step = 1e-5

    def moved(key, at, by):
        change = torch.zeros_like(seen[key])
        change[(0, *at)] = by
        with minivit.replace(model, {key: seen[key] + change}):
            return logits(model, pictures)[0, which].item()

    total = torch.eye(tokens, dtype=torch.float64)
    for key, matrix in zip(names, found.matrices[:, 0], strict=True):
        # What this block adds; of three entries every head's slope is measured.
        added = (matrix - total) @ torch.linalg.inv(total)
        for query, token in (0, tokens - 1), (3, 3), (tokens - 2, 1):
            slopes = [
                (moved(key, (h, query, token), step) - moved(key, (h, query, token), -step)) / (2 * step)
                for h in range(HEADS)
            ]  # fmt: skip
            weights = seen[key][0, :, query, token].tolist()
            known = sum(max(w * s, 0) for w, s in zip(weights, slopes, strict=True)) / HEADS
            assert added[query, token].item() == pytest.approx(known, rel=1e-4, abs=1e-9)
        total = matrix
    assert found.patches.shape == (DEPTH, 1, len(found.where)) and found.patches[-1].max() > 0


def test_batches_do_not_matter_and_the_model_comes_back_as_it_was():
    model = draw(minivit.create("vit_8px", pool="class", depth=2, dropout=0.3)).train()
    x, classes = torch.rand(5, 1, 8, 8), torch.arange(5)
    found = relevance(model, x, classes)
    assert found.matrices.shape == (2, 5, 17, 17)
    for other in relevance(model, x, classes, batch_size=2), relevance(model, x.split(3), classes):
        torch.testing.assert_close(other.matrices, found.matrices, rtol=1e-4, atol=1e-7)
    with torch.inference_mode():
        inside = relevance(model, x + 0, classes)
    torch.testing.assert_close(inside.matrices, found.matrices)
    assert not torch.allclose(relevance(model, x, classes + 1).patches, found.patches)
    assert model.training and not x.requires_grad
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_what_has_no_relevance_is_refused():
    model, x = draw(minivit.create("vit_8px")), torch.rand(2, 1, 8, 8)
    pit = minivit.create("pit_32px")
    shared = Known(torch.eye(N)[None])
    shared.blocks[0] = SharedBlock(torch.eye(N)[None])
    assert_refused([
        (partial(relevance, minivit.create("mixer_8px"), x), ValueError, "Mixer computes no attention"),
        (partial(relevance, pit, images(1, (32, 32))), ValueError, "the same tokens in all blocks"),
        (partial(relevance, shared, images()), ValueError, r"\[2, 1, 12, 12\] for 2 images: got \[1, 1, 12, 12\]; give one"),
        (partial(relevance, model, x, torch.tensor([0])), ValueError, "a class below 10 for each of 2 images"),
        (partial(relevance, model, x.byte()), (TypeError, ValueError), "expected images of"),
    ])  # fmt: skip
