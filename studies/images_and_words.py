"""Two small towers, of images and of words, trained by a softmax or a sigmoid over all their pairs.

Rows ``LOSS N`` have batches of N pictures; those ``at T`` keep the inverse temperature T.
"""

import math
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import minivit
from studies.runner.survey import Figures, Survey, plain
from studies.shared.lengths import at_rate, named
from studies.shared.training import optimise
from vitlab.data.patterns import OUTLINES, TEXTURES

SEEDS = range(5)
STEPS = 200
RATE, NEXT = 1e-2, 3e-3
SHIFTS = (-0.5, -0.25, 0.0, 0.25, 0.5)  # of each cloud, in gaps; the last one closes it
SHAPES = ("disc", "ring", "square", "triangle", "star", "cross", "heart", "arrow")
LOOKS = ("stripes", "checks", "dots", "bricks", "zigzag", "ripples", "grain", "shade")
N = len(SHAPES)
PAIRS = torch.cartesian_prod(torch.arange(N), torch.arange(N))  # shape, texture
HELD_OUT = torch.isin((PAIRS[:, 0] - PAIRS[:, 1]) % N, torch.tensor([0, 3]))
CAPTIONS = PAIRS.flip(1) + torch.tensor([N + 1, 1])  # two words each, as numbers from 1; 0 is none
BARE = torch.stack([1 + torch.arange(N), torch.zeros(N).long()], 1)  # the shape's name alone


@cache
def pictures(count: int, seed: int) -> Tensor:
    """Pictures [pairs, count, 1, 16, 16] of every pair."""
    shapes, looks = (column.repeat_interleave(count) for column in PAIRS.unbind(1))
    generator = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(len(shapes), 1, 1, generator=generator)

    at = (torch.arange(16) + 0.5) / 16 - 0.5
    scale = uniform(0.5, 0.65)
    u, v = ((x - uniform(-0.1, 0.1)) / scale for x in (at[None, None], at[None, :, None]))
    u, v = torch.broadcast_tensors(u, v)
    p, q = (3.2 * x + uniform(-0.15, 0.15) for x in (u, v))
    inside, look = torch.empty_like(u), torch.empty_like(u)
    for k in range(N):
        inside[shapes == k] = -OUTLINES[SHAPES[k]](u[shapes == k], v[shapes == k])
        look[looks == k] = TEXTURES[LOOKS[k]](p[looks == k], q[looks == k])
    cover = (0.5 + 16 * scale * inside).clamp(0, 1)
    images = cover * (0.3 + 0.7 * look) + 0.1 * torch.randn(u.shape, generator=generator)
    return ((images - 0.25) / 0.3).view(len(PAIRS), count, 1, 16, 16)


class Towers(nn.Module):
    """A ViT for pictures and a bag of words for captions, both to vectors of length 1."""

    def __init__(self, scale: float, bias: float) -> None:
        super().__init__()
        sizes = {"image_size": 16, "channels": 1, "patch_size": 4, "classes": 16}
        vit: Any = minivit.create("vit_32px", dim=32, depth=1, heads=2, pool="mean", **sizes)
        nn.init.normal_(vit.head.weight, std=32**-0.5)  # a new ViT's is zero
        self.vit = vit
        self.table = nn.Embedding(1 + 2 * N, 32, padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 16))
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.bias = nn.Parameter(torch.tensor(bias))

    def images(self, x: Tensor) -> Tensor:
        return F.normalize(self.vit(x), dim=-1)

    def words(self, captions: Tensor) -> Tensor:
        means = self.table(captions).sum(-2) / (captions > 0).sum(-1, keepdim=True)
        return F.normalize(self.mlp(means), dim=-1)

    def loss(self, kind: str, a: Tensor, b: Tensor) -> Tensor:
        scores, own = a @ b.mT * self.log_scale.exp(), torch.arange(len(a))
        if kind == "softmax":
            return (F.cross_entropy(scores, own) + F.cross_entropy(scores.mT, own)) / 2
        return -F.logsigmoid((2 * torch.eye(len(a)) - 1) * (scores + self.bias)).sum() / len(a)


def towers(row: str, steps: int, rate: float, seed: int) -> Figures:
    """What a pair of towers does, whose row says how it is trained."""
    kind, *how, number = row.split()
    torch.manual_seed(seed)
    model = Towers(float(number) if how else 10.0, -10.0)
    model.log_scale.requires_grad_(not how)
    before = gap(model)
    draws, seen = torch.Generator().manual_seed(seed), (~HELD_OUT).nonzero()[:, 0]
    train, batch = pictures(80, 1), len(seen) if how else int(number)

    def loss() -> Tensor:
        pairs = seen[torch.randperm(len(seen), generator=draws)[:batch]]
        each = torch.randint(train.shape[1], (batch,), generator=draws)
        return model.loss(kind, model.images(train[pairs, each]), model.words(CAPTIONS[pairs]))

    optimise(model, loss, steps, rate, fused=True)
    figures = {"kept": gap(model).norm() / before.norm(), "gap": gap(model).norm()}
    return plain(figures | measured(model, kind))


@torch.no_grad()
def gap(model: Towers) -> Tensor:
    """From the centre of the captions to that of the pictures, of pairs that were trained."""
    images = model.images(pictures(20, 2)[~HELD_OUT].flatten(0, 1)).mean(0)
    return images - model.words(CAPTIONS[~HELD_OUT]).mean(0)


@torch.no_grad()
def measured(model: Towers, kind: str) -> Figures:
    """How pictures are named, as they are and after shifts along the gap."""
    by_shift, seen, both = [], ~HELD_OUT, (pictures(20, 2), pictures(10, 3))
    words, away = model.words(CAPTIONS), gap(model)
    test, held = (model.images(x.flatten(0, 1)).view(*x.shape[:2], -1) for x in both)
    for shift in SHIFTS:
        b = F.normalize(words + shift * away, dim=-1)
        a, other = (F.normalize(x - shift * away, dim=-1) for x in (test, held))
        loss = torch.stack([model.loss(kind, x, b[seen]) for x in a[seen].unbind(1)]).mean()
        by_shift.append((loss, named_right(a, b), named_right(other, b)[seen]))
    losses, right, chosen = zip(*by_shift, strict=True)
    best = max(range(len(SHIFTS)), key=lambda i: chosen[i].mean().item())
    start = SHIFTS.index(0.0)
    prompts = F.normalize(words.view(N, N, -1).mean(1), dim=-1)  # a shape with every texture
    by_name = model.words(BARE), prompts
    bare, prompted = ((test @ b.mT).argmax(-1) == PAIRS[:, :1] for b in by_name)
    own = (held[seen] * words[seen][:, None]).sum(-1).mean()
    return {
        "accuracy": right[start].mean(), "seen": right[start][seen].mean(),
        "held_out": right[start][HELD_OUT].mean(),
        "bare": bare.double().mean(), "prompts": prompted.double().mean(),
        "losses": torch.stack(losses), "by_shift": torch.stack([r.mean() for r in right]),
        "closed": losses[-1] / losses[start] - 1, "gain": right[best].mean() - right[start].mean(),
        "validation": chosen[start].mean(), "likelihood": own,
        "scale": model.log_scale.exp(), "bias": model.bias,
    }  # fmt: skip


def named_right(a: Tensor, b: Tensor) -> Tensor:
    """Of each pair, the fraction of pictures whose nearest caption is their own, of all."""
    return ((a @ b.mT).argmax(-1) == torch.arange(len(a))[:, None]).double().mean(1)


def at_two_rates(row: str, times: int) -> Figures:
    """At the rate of :data:`RATE`; after the most steps at the next one, too."""
    training, name = partial(towers, row, times * STEPS), f"images_and_words {row}, {times} x"
    rates = {"next": at_rate(training, SEEDS, NEXT, name)} if times > 1 else {}
    return at_rate(training, SEEDS, RATE, name) | rates | {"steps": times * STEPS}


KINDS = ("softmax 48", "sigmoid 48", "softmax at 100", "softmax at 5", "softmax 8", "sigmoid 8")
ROWS = {named(kind, n): partial(at_two_rates, kind, n) for kind in KINDS for n in (1, 3)}
STUDY = Survey("images_and_words", ROWS, SEEDS)
