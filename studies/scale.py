"""Attention beside convolution and recurrence at equal parameters, and patches filled in.

``retrieval`` rows: small readers trained on 4 to 16 pairs, asked on up to 256; five seeds each, at
the rate that did best on sequences as in training. ``marked`` rows: the same where one pair is
marked from the start, so that a single value has to be kept. ``digits`` rows: a ViT of two blocks
whose attention is replaced by a 3 x 3 convolution or a recurrent unit, its width chosen so that all
have about as many parameters; on all digits and on a tenth, at the rate that did best on the
validation part. ``masked``: three seeds of a ViT that learns without labels to fill in patches.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import minivit
from minivit.hybrid import to_map, to_tokens
from minivit.model import Model
from minivit.vit import ViT
from studies.runner.run import operations
from studies.runner.survey import Figures, Survey
from studies.shared.digit_models import fraction_of, plain
from studies.shared.masked_patches import masked_patches
from studies.shared.sequences import LONGEST, Attending, Kind, Reader, pairs, right, taught
from vitlab.data import Data, load_data
from vitlab.training import Recipe, train
from vitlab.training.evaluate import evaluate

SEEDS = range(5)
RATES = (1e-3, 3e-3, 1e-2)
LENGTHS = (4, 16, 32, 64, 128, 256)
READERS: tuple[Kind, ...] = ("attention", "attention with positions", "recurrent")
MIXERS = ("attention", "convolution", "recurrence")
STEPS = {"attention": 1000, "recurrent": 3000, "digits": 200}  # recurrence learns more slowly


def measure(row: str, rehearsal: bool) -> Figures:
    """The figures of one row, lists over the seeds."""
    seeds = SEEDS[:2] if rehearsal else SEEDS
    if row == "masked":
        return plain(over(masked_patches(seed, rehearsal) for seed in seeds[:3]))
    task, _, kind = row.partition(" ")
    if task == "marked":
        return plain(over(kept(kind, seed, rehearsal) for seed in seeds))
    return plain(retrieval(kind, seeds, rehearsal) if task == "retrieval"
                 else digits(kind, seeds, rehearsal))  # fmt: skip


def over(found: Any) -> Figures:
    """A list for each figure out of a figure for each seed."""
    rows = list(found)
    return {key: [row[key] for row in rows] for key in rows[0]}


def retrieval(kind: Any, seeds: Sequence[int], rehearsal: bool) -> Figures:
    """How often readers answer right, by length, and how much their attention gives to the pair."""
    steps, count = (2, 20) if rehearsal else (STEPS[kind.split()[0]], 2000)
    search = {rate: right(taught(kind, rate, 0, steps), LONGEST, 90_000, count) for rate in RATES}
    rate = max(search, key=lambda r: search[r])
    model = Reader(kind)
    found = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "search": {str(rate): accuracy for rate, accuracy in search.items()},
        "rate": rate,
        "lengths": list(LENGTHS),
    }
    return found | over(read(kind, rate, seed, steps, count) for seed in seeds)


@torch.no_grad()
def read(kind: Any, rate: float, seed: int, steps: int, count: int) -> Figures:
    """One reader, over all lengths."""
    with torch.enable_grad():
        model = taught(kind, rate, seed, steps)
    found: Figures = {"accuracy": [right(model, n, 10_000 + n, count) for n in LENGTHS]}
    if isinstance(model.mixing, Attending):
        found["weight"] = [on_the_pair(model, n) for n in LENGTHS]
        # Scores times log n over log 16: what spreads over n tokens is taken back.
        logs = torch.tensor(LENGTHS).log() / torch.tensor(LONGEST).log()
        found["sharpened"] = [
            right(model, n, 10_000 + n, count, sharper=max(1.0, by))
            for n, by in zip(LENGTHS, logs.tolist(), strict=True)
        ]
    return found


def kept(kind: Any, seed: int, rehearsal: bool) -> Figures:
    """One reader of sequences in which the pair that will be asked for is marked."""
    steps, count = (2, 20) if rehearsal else (STEPS["attention"], 2000)
    model = taught(kind, 3e-3, seed, steps, marked=True)
    return {"accuracy": [right(model, n, 10_000 + n, count, marked=True) for n in LENGTHS]}


def on_the_pair(model: Reader, length: int) -> float:
    """Mean weight of the question on the pair that it asks for."""
    assert isinstance(model.mixing, Attending)
    tokens, _ = pairs(250, length, torch.Generator().manual_seed(length))
    weights = model.mixing.weights(model.embed(tokens))
    keys = tokens[..., :32]
    asked = (keys[:, :-1] @ keys[:, -1:].mT)[..., 0].argmax(1)
    return weights[torch.arange(len(asked)), asked].mean().item()


class Convolution(nn.Module):
    """A 3 x 3 convolution over the grid of patches, in the place of attention."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 3, padding=1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return to_tokens(self.conv(to_map(x, 4)))


class Recurrence(nn.Module):
    """A gated recurrent unit over the patches in reading order, in the place of attention."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.gru(x)[0]


WIDTHS = {"attention": 48, "convolution": 38, "recurrence": 43}  # of about equal parameters


def mixing(kind: str) -> Model:
    """A ViT of two blocks with attention or something else in its place."""
    model = minivit.create(
        "vit_8px", dim=WIDTHS[kind], depth=2, heads=4 if kind == "attention" else 1
    )
    assert isinstance(model, ViT)
    others = {"convolution": Convolution, "recurrence": Recurrence}
    for block in model.blocks:
        if kind in others:
            block.attention = others[kind](WIDTHS[kind])
    return model


def digits(kind: str, seeds: Sequence[int], rehearsal: bool) -> Figures:
    """Accuracy in training and test, on all digits and on a tenth; cost."""
    steps = 2 if rehearsal else STEPS["digits"]
    whole = load_data("DIGITS")
    search = {rate: fitted(kind, whole, rate, 0, steps)[1] for rate in RATES}
    rate = max(search, key=lambda r: search[r])
    model = mixing(kind)
    found: Figures = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "operations": operations(model),
        "search": {str(rate): accuracy for rate, accuracy in search.items()},
        "rate": rate,
    }
    keys = ("train", "validation", "test")
    for name, few in (("all", False), ("tenth", True)):
        parts = [fraction_of(whole, 0.1, seed) if few else whole for seed in seeds]
        found[name] = over(
            dict(zip(keys, fitted(kind, part, rate, seed, steps), strict=True))
            for part, seed in zip(parts, seeds, strict=True)
        )
    return found


def fitted(kind: str, data: Data, rate: float, seed: int, steps: int) -> tuple[float, float, float]:
    """Accuracies on the training, validation and test part."""
    torch.manual_seed(seed)
    model = mixing(kind)
    recipe = Recipe(steps=steps, batch_size=64, learning_rate=rate, average=0.9, seed=seed)
    done = train(model, data, recipe)
    scores = evaluate(model, data.train), evaluate(model, data.validation), done.test
    return tuple(score.accuracy for score in scores)  # type: ignore[return-value]


STUDY = Survey(
    "scale",
    (
        *(f"retrieval {kind}" for kind in READERS),
        *(f"digits {kind}" for kind in MIXERS),
        "masked",
        *(f"marked {kind}" for kind in ("attention", "recurrent")),
    ),
    measure,
    seeds=SEEDS,
)
