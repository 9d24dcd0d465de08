"""What does a small ViT learn from digits without labels, and what keeps it from collapse?

``masked``: an autoencoder that fills in patches, after He et al. (2022). The others train a student
to agree with its own average, after Caron et al. (2021): with ``both`` brakes on collapse, with one
of them taken off, and with a copy of the student as its teacher. ``both, 3 x`` is longer, since the
features still improve. Each row is one seed.
"""

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

import minivit
from minivit.patches import patchify
from minivit.vit import Block
from studies.runner.survey import Figures, Survey
from studies.shared.inputs import digits
from studies.shared.training import optimise
from vitlab.instruments.probes import probe

SEEDS = range(5)
PATCHES, KEPT, OUTPUTS, STUDENT = 16, 4, 32, 0.1  # the last: the student's temperature
STEPS = {"both": 700, "both, 3 x": 2100, "masked": 400}
FEWER = 300  # of those that collapse
POINTS = 50  # of a curve
# of the teacher: how much of its weights it keeps, its temperature, whether there is a centre
SETTINGS = {
    "both": (0.98, 0.02, True),
    "both, 3 x": (0.98, 0.02, True),
    "no centre": (0.98, 0.02, False),
    "no sharpening": (0.98, STUDENT, True),
    "copied teacher": (0.0, 0.02, True),
}


def encoder() -> Any:
    return minivit.create("vit_8px", dim=32, depth=2, heads=4)


@torch.no_grad()
def tokens(vit: Any, x: Tensor) -> Tensor:
    return vit.norm(vit.tokens(x))


def named(train: Tensor, test: Tensor, neighbours: int = 10) -> float:
    """The fraction of test digits whose most similar training digits mostly have their label."""
    labels, truth = digits("train")[1], digits("test")[1]
    near = (F.normalize(test, dim=1) @ F.normalize(train, dim=1).mT).topk(neighbours).indices
    return (labels[near].mode(1).values == truth).double().mean().item()


def neighbours(vit: Any) -> float:
    return named(tokens(vit, digits("train")[0]).mean(1), tokens(vit, digits("test")[0]).mean(1))


class Filling(nn.Module):
    """An encoder of visible patches, and a decoder of one block that gets a token for the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.vit = encoder()
        self.blank = nn.Parameter(0.02 * torch.randn(32))
        self.places = nn.Parameter(0.02 * torch.randn(PATCHES, 32))
        self.block, self.norm = Block(32, heads=4, hidden=64), nn.LayerNorm(32)
        self.pixels = nn.Linear(32, 4)

    def forward(self, images: Tensor, keep: Tensor, restore: Tensor) -> Tensor:
        x = self.vit.positions(self.vit.patch_embedding(images), (4, 4))
        x = x.gather(1, keep[..., None].expand(-1, -1, 32))
        for block in self.vit.blocks:
            x = block(x)
        blank = self.blank.expand(len(x), PATCHES - KEPT, -1)
        x = torch.cat([self.vit.norm(x), blank], 1)
        x = x.gather(1, restore[..., None].expand(-1, -1, 32)) + self.places
        return self.pixels(self.norm(self.block(x)))


def masked(seed: int) -> Figures:
    torch.manual_seed(seed)
    train, model = digits("train")[0], Filling()
    before, draws = neighbours(model.vit), Generator().manual_seed(seed)

    def loss() -> Tensor:
        images = train[torch.randint(len(train), (64,), generator=draws)]
        order = torch.rand(64, PATCHES, generator=draws).argsort(1)
        restore, patches = order.argsort(1), patchify(images, 2)
        guess = model(images, order[:, :KEPT], restore)
        target = F.layer_norm(patches, (4,), eps=1e-2)
        return F.mse_loss(guess[restore >= KEPT], target[restore >= KEPT])

    optimise(model, loss, STEPS["masked"], 3e-3, fused=True)
    return {"before": before} | read(model.vit)


def read(vit: Any) -> Figures:
    (train, labels), (test, truth) = digits("train"), digits("test")
    known, asked = (tokens(vit, x).mean(1) for x in (train, test))
    line = probe((known, labels), (asked, truth)).accuracy
    return {"neighbours": named(known, asked), "linear": line, "component": component(vit)}


def component(vit: Any) -> float:
    """How well a digit's first component tells patches with ink from others; either sign."""
    found, raw = [], digits("test")[0]
    ink = patchify(raw - raw.min(), 2).mean(-1) > (raw.max() - raw.min()) / 4
    for x, inked in zip(tokens(vit, raw), ink, strict=True):
        score = torch.linalg.svd(x - x.mean(0))[0][:, 0]
        more = (score[inked][:, None] > score[~inked]).double().mean().item()
        found.append(max(more, 1 - more))
    return sum(found) / len(found)


def views(images: Tensor, draws: Generator) -> Tensor:
    """Each turned, slanted, scaled, shifted and dimmed at random, with noise."""

    def some(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(len(images), generator=draws)

    turn, scale, slant = some(-0.25, 0.25), 1 / some(0.8, 1.15), some(-0.2, 0.2)
    rows = [scale * turn.cos(), slant - scale * turn.sin(), some(-0.13, 0.13)]
    more = [scale * turn.sin(), scale * turn.cos(), some(-0.13, 0.13)]
    maps = torch.stack([torch.stack(rows, 1), torch.stack(more, 1)], 1)
    ground = digits("train")[0].min()
    places = F.affine_grid(maps, list(images.shape), align_corners=False)
    seen = F.grid_sample(images - ground, places, align_corners=False) + ground
    noise = torch.randn(images.shape, generator=draws)
    return seen * some(0.7, 1.3)[:, None, None, None] + 0.1 * noise


class Agreeing(nn.Module):
    """A ViT whose mean token a head maps to scores."""

    def __init__(self) -> None:
        super().__init__()
        self.vit = encoder()
        last = nn.Linear(32, OUTPUTS, bias=False)  # a bias is what the centre subtracts
        self.head = nn.Sequential(nn.Linear(32, 96), nn.GELU(), nn.Linear(96, 32), nn.GELU(), last)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.vit.norm(self.vit.tokens(images)).mean(1))


def entropy(p: Tensor) -> Tensor:
    return -torch.special.xlogy(p, p).sum(-1)


def agreed(kind: str, seed: int) -> Figures:
    torch.manual_seed(seed)
    keeps, temperature, centred = SETTINGS[kind]
    steps, train, student = STEPS.get(kind, FEWER), digits("train")[0], Agreeing()
    teacher = copy.deepcopy(student).requires_grad_(False)
    draws, before = Generator().manual_seed(seed), {"before": neighbours(student.vit)}
    before["component before"] = component(student.vit)
    centre = teacher(train).mean(0) if centred else torch.zeros(OUTPUTS)
    curve: list[Any] = []
    stops: list[Any] = []

    def stopped() -> None:
        stops.append([neighbours(one.vit) for one in (teacher, student)])

    def loss() -> Tensor:
        step = len(curve)
        keep = 1 - (1 - keeps) * (1 + math.cos(math.pi * step / steps)) / 2 if keeps else 0
        for mine, new in zip(teacher.parameters(), student.parameters(), strict=True):
            mine.lerp_(new.detach(), 1 - keep)
        if kind in STEPS and step in [i * steps // 4 for i in (1, 2, 3)]:
            stopped()
        images = train[torch.randint(len(train), (32,), generator=draws)]
        both = views(images.repeat(2, 1, 1, 1), draws)
        scores = teacher(both)
        target = ((scores - centre) / temperature).softmax(1)
        if centred:
            centre.lerp_(scores.mean(0), 0.1)
        log = (student(both) / STUDENT).log_softmax(1)
        cross = -(target.roll(32, 0) * log).sum(1).mean()
        own = entropy(target).mean()
        curve.append([own.item(), (cross - own).item()])
        return cross

    optimise(student, loss, steps, 3e-3, fused=True)
    stopped()
    target = ((teacher(views(train, draws)) - centre) / temperature).softmax(1)
    own, whole = entropy(target).mean(), entropy(target.mean(0))
    every = max(1, steps // POINTS)
    return before | read(teacher.vit) | {
        "entropy": own / math.log(OUTPUTS),
        "groups": (whole - own).exp(),
        "stops": stops,
        "steps": list(range(0, steps, every)),
        "curve": curve[::every],
    }  # fmt: skip


def pixels() -> Figures:
    return {"neighbours": named(digits("train")[0].flatten(1), digits("test")[0].flatten(1))}


ROWS: dict[str, Callable[[], Figures]] = {"pixels": pixels}
for seed in SEEDS:
    ROWS[f"masked {seed}"] = partial(masked, seed)
    ROWS |= {f"{kind} {seed}": partial(agreed, kind, seed) for kind in SETTINGS}
STUDY = Survey("without_labels", ROWS, SEEDS)
