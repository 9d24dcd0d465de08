"""Attention beside convolution and recurrence at equal parameters, and patches filled in.

``retrieval``: small readers trained on 4 to 16 pairs, tested on up to 256; in ``marked`` rows a
single value has to be kept. ``digits``: ViTs whose attention is replaced, on all or a tenth.
``masked``: a ViT that learns without labels to fill in patches. ``3 x``: as many steps.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import minivit
from minivit.hybrid import to_map, to_tokens
from minivit.model import Model
from studies.runner.run import operations
from studies.runner.survey import Figures, Survey, over_seeds, plain
from studies.shared.digit_models import on_digits
from studies.shared.lengths import TIMES, after, at_best_rate, named
from studies.shared.masked_patches import masked_patches
from studies.shared.sequences import COUNT, LONGEST, Kind, by_length, pairs, right, taught
from studies.shared.training import outputs
from vitlab.training import Recipe

SEEDS = range(5)
LENGTHS = (4, 16, 32, 64, 128, 256)
READERS: tuple[Kind, ...] = ("attention", "attention with positions", "recurrent")
STEPS = {"attention": 1000, "recurrent": 3000, "digits": 200}  # recurrence learns more slowly
AMOUNTS = [("all", 1), *(("tenth", times) for times in TIMES)]
WIDTHS = {"attention": 48, "convolution": 38, "recurrence": 43}  # of about equal parameters


def retrieval(kind: Kind, times: int) -> Figures:
    """How often readers answer right, by length, and how much their attention gives to the pair.

    Rates are compared on as many pairs as the longest sequences in training had.
    """
    steps = times * STEPS[kind.split()[0]]
    name = f"scale {kind}, {times} x"
    return at_best_rate(partial(reader, kind, steps), SEEDS, 3e-3, name) | {
        "steps": steps,
        "lengths": LENGTHS,
    }


def reader(kind: Kind, steps: int, rate: float, seed: int) -> Figures:
    """What one reader does, on new pairs for the choice of a rate and over all lengths."""
    model = taught(kind, rate, seed, steps)
    tokens, answers = pairs(COUNT, LONGEST, torch.Generator().manual_seed(90_000))
    logits = outputs(model, tokens)
    figures = by_length(model, LENGTHS) | {"likelihood": -F.cross_entropy(logits, answers)}
    figures["validation"] = (logits.argmax(1) == answers).double().mean()
    return plain(figures)


def marked(kind: Kind) -> Figures:
    """Readers of sequences in which the pair that will be asked for is marked."""
    models = (taught(kind, 3e-3, seed, STEPS["attention"], marked=True) for seed in SEEDS)
    return {"accuracy": [[right(m, n, 10_000 + n, marked=True) for n in LENGTHS] for m in models]}


class Convolution(nn.Conv2d):
    """A 3 x 3 convolution over the grid of patches, in the place of attention."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return to_tokens(super().forward(to_map(x, 4)))


class Recurrence(nn.GRU):
    """A gated recurrent unit over the patches in reading order, in the place of attention."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return super().forward(x)[0]


def mixing(kind: str) -> Model:
    """A ViT of two blocks with attention or something else in its place."""
    dim = WIDTHS[kind]
    heads = 4 if kind == "attention" else 1
    model: Any = minivit.create("vit_8px", dim=dim, depth=2, heads=heads)
    for block in model.blocks:
        if kind == "convolution":
            block.attention = Convolution(dim, dim, 3, padding=1)
        elif kind == "recurrence":
            block.attention = Recurrence(dim, dim, batch_first=True)
    return model


def digits(kind: str, amount: str, times: int) -> Figures:
    """Scores after ``times`` as many steps, on all digits or on a tenth; cost."""
    recipe = Recipe(steps=times * STEPS["digits"], batch_size=64, average=0.9)
    training = partial(on_digits, partial(mixing, kind), amount, recipe)
    model = mixing(kind)
    return after(times, training, SEEDS, "scale", f"digits {kind}, {amount}") | {
        "steps": recipe.steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "operations": operations(model),
    }


ROWS: dict[str, Callable[[], Figures]] = {
    **{named(f"retrieval {k}", n): partial(retrieval, k, n) for k in READERS for n in TIMES},
    **{named(f"digits {k}, {a}", n): partial(digits, k, a, n) for k in WIDTHS for a, n in AMOUNTS},
    "masked": lambda: over_seeds(masked_patches(seed) for seed in SEEDS[:3]),
    **{f"marked {kind}": partial(marked, kind) for kind in (READERS[0], READERS[2])},
}
STUDY = Survey("scale", ROWS, SEEDS)
