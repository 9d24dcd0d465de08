"""Attention beside convolution and recurrence at equal parameters, and patches filled in.

``retrieval`` rows: small readers trained on 4 to 16 pairs, asked on up to 256; five seeds each, at
the rate that did best on sequences as in training. ``marked`` rows: the same where one pair is
marked from the start, so that a single value has to be kept. ``digits`` rows: a ViT of two blocks
whose attention is replaced by a 3 x 3 convolution or a recurrent unit, its width chosen so that all
have about as many parameters; on all digits and on a tenth, at the rate that did best on the
validation part. ``masked``: three seeds of a ViT that learns without labels to fill in patches.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import minivit
from minivit.hybrid import to_map, to_tokens
from minivit.model import Model
from studies.runner.run import operations
from studies.runner.survey import Figures, Survey
from studies.shared.digit_models import fraction_of
from studies.shared.figures import over_seeds, plain
from studies.shared.masked_patches import masked_patches
from studies.shared.sequences import KEY, LONGEST, Attending, Kind, Reader, pairs, right, taught
from studies.shared.training import trained
from vitlab.data import Data, load_data
from vitlab.training import Recipe
from vitlab.training.evaluate import evaluate

SEEDS = range(5)
RATES = (1e-3, 3e-3, 1e-2)
LENGTHS = (4, 16, 32, 64, 128, 256)
READERS: tuple[Kind, ...] = ("attention", "attention with positions", "recurrent")
MIXERS = ("attention", "convolution", "recurrence")
STEPS = {"attention": 1000, "recurrent": 3000, "digits": 200}  # recurrence learns more slowly


def measure(row: str) -> Figures:
    if row == "masked":
        return plain(over_seeds(masked_patches(seed) for seed in SEEDS[:3]))
    task, _, kind = row.partition(" ")
    if task == "marked":
        return plain(over_seeds(marked(kind, seed) for seed in SEEDS))
    return plain(retrieval(kind) if task == "retrieval" else digits(kind))


def retrieval(kind: Any) -> Figures:
    """How often readers answer right, by length, and how much their attention gives to the pair."""
    steps = STEPS[kind.split()[0]]
    search = {rate: right(taught(kind, rate, 0, steps), LONGEST, 90_000) for rate in RATES}
    rate = max(search, key=lambda r: search[r])
    return {
        "parameters": sum(p.numel() for p in Reader(kind).parameters()),
        "search": {str(rate): accuracy for rate, accuracy in search.items()},
        "rate": rate,
        "lengths": list(LENGTHS),
    } | over_seeds(by_length(taught(kind, rate, seed, steps)) for seed in SEEDS)


@torch.no_grad()
def by_length(model: Reader) -> Figures:
    """What one reader of pairs does, over all lengths."""
    figures: Figures = {"accuracy": [right(model, n, 10_000 + n) for n in LENGTHS]}
    if isinstance(model.mixing, Attending):
        figures["weight"] = [on_the_pair(model, n) for n in LENGTHS]
        # Scores times log n over log 16: what spreads over n tokens is taken back.
        logs = torch.tensor(LENGTHS).log() / torch.tensor(LONGEST).log()
        figures["sharpened"] = [
            right(model, n, 10_000 + n, sharper=max(1.0, by))
            for n, by in zip(LENGTHS, logs.tolist(), strict=True)
        ]
    return figures


def marked(kind: Any, seed: int) -> Figures:
    """One reader of sequences in which the pair that will be asked for is marked."""
    model = taught(kind, 3e-3, seed, STEPS["attention"], marked=True)
    return {"accuracy": [right(model, n, 10_000 + n, marked=True) for n in LENGTHS]}


def on_the_pair(model: Any, length: int) -> float:
    """Mean weight of the question on the pair that it asks for."""
    tokens, _ = pairs(250, length, torch.Generator().manual_seed(length))
    weights = model.mixing.weights(model.embed(tokens))
    keys = tokens[..., :KEY]
    pair = (keys[:, :-1] @ keys[:, -1:].mT)[..., 0].argmax(1)
    return weights[torch.arange(len(pair)), pair].mean().item()


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
    sizes = {"dim": WIDTHS[kind], "depth": 2, "heads": 4 if kind == "attention" else 1}
    model: Any = minivit.create("vit_8px", **sizes)
    others = {"convolution": Convolution, "recurrence": Recurrence}
    for block in model.blocks:
        if kind in others:
            block.attention = others[kind](WIDTHS[kind])
    return model


def digits(kind: str) -> Figures:
    """Accuracy in training and test, on all digits and on a tenth; cost."""
    whole = load_data("DIGITS")
    search = {rate: fitted(kind, whole, rate, 0)["validation"] for rate in RATES}
    rate = max(search, key=lambda r: search[r])
    model = mixing(kind)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "operations": operations(model),
        "search": {str(rate): accuracy for rate, accuracy in search.items()},
        "rate": rate,
        "all": over_seeds(fitted(kind, whole, rate, seed) for seed in SEEDS),
        "tenth": over_seeds(
            fitted(kind, fraction_of(whole, 0.1, seed), rate, seed) for seed in SEEDS
        ),
    }


def fitted(kind: str, data: Data, rate: float, seed: int) -> dict[str, float]:
    """Accuracies on the training, validation and test part."""
    recipe = Recipe(steps=STEPS["digits"], batch_size=64, learning_rate=rate, average=0.9)
    model, test = trained(partial(mixing, kind), data, recipe, seed)
    scores = {part: evaluate(model, getattr(data, part)) for part in ("train", "validation")}
    return {part: score.accuracy for part, score in scores.items()} | {"test": test}


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
