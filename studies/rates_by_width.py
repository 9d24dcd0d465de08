"""Does the best learning rate stay where it is as a ViT becomes wider?

Small ViTs of digits, trained for 150 steps. One rate for all parameters, or the rates of Yang et
al. (2022), *Tensor Programs V*, for Adam: those of matrices that read the width are divided by
it. Heads are 8 wide at every width, so that the scale of the scores stays.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import minivit
from studies.runner.survey import Figures, by_row
from vitlab.data import load_data

WIDTHS = (16, 32, 64)
SEEDS = range(3)
STEPS = 150
HALVINGS = range(12, 3, -1)  # a rate of 2 ** -12, and so on
LAST = 30  # steps whose mean training loss is kept


def groups(model: nn.Module, rate: float, divided: float) -> list[dict[str, Any]]:
    """Matrices that read the width, which learn at a divided rate, and all other parameters."""
    reads = [layer.weight for layer in model.modules() if isinstance(layer, nn.Linear)]
    others = set(model.parameters()) - set(reads)
    return [{"params": reads, "lr": rate / divided}, {"params": [*others], "lr": rate}]


def loss(width: int, divided: bool, rate: float, seed: int) -> float:
    """The mean training loss of the last steps."""
    torch.manual_seed(seed)
    model = minivit.create("vit_8px", dim=width, heads=width // 8, depth=2)
    data = load_data("DIGITS").train
    images = minivit.load("digits_vit").preprocess(data.images)
    draws = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(groups(model, rate, width / WIDTHS[0] if divided else 1))
    losses = []
    for _ in range(STEPS):
        batch = torch.randint(len(images), (64,), generator=draws)
        value = F.cross_entropy(model(images[batch]), data.labels[batch])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        losses.append(value.item())
    return sum(losses[-LAST:]) / LAST


def curves(row: str) -> Figures:
    """Losses by rate and seed."""
    width, way = row.split(", ")
    rates = [2.0**-times for times in HALVINGS]
    losses = [[loss(int(width), way == "divided", rate, seed) for seed in SEEDS] for rate in rates]
    return {"halvings": [*HALVINGS], "losses": losses}


ROWS = [f"{width}, {way}" for way in ("one rate", "divided") for width in WIDTHS]
STUDY = by_row("rates_by_width", curves, ROWS, seeds=SEEDS)
