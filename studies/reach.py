"""How far must attention see, and must it depend on the image?

ViTs read the digits pixel by pixel, with attention that sees all of the grid, a neighbourhood, or a
window; or with ``static`` mixing weights, learned but the same in all images. ``3 x`` and ``10 x``:
as many steps. ``curvature``: early in training.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import minivit
from minivit.model import Model
from minivit.parts import window_mask
from studies.runner.run import spread
from studies.runner.survey import Figures, Survey, over_seeds
from studies.shared.digit_models import on_digits
from studies.shared.lengths import TIMES, after, named
from vitlab.data import load_data
from vitlab.instruments.spectra import density
from vitlab.training import Recipe
from vitlab.training.run import Run

GRID = (8, 8)  # of patches, each of which is one pixel
SIZES: dict[str, Any] = {"patch_size": 1, "dim": 32, "depth": 4, "heads": 4}
WINDOW = 4
MIXING = (
    "global", "3 x 3", "5 x 5", "windows", "shifted windows", "static", "static with 1 head"
)  # fmt: skip
SEEDS = range(5)
STEPS = {"all": 600, "tenth": 300}
FEW = ("global", "windows", "shifted windows")  # also trained on a tenth
CURVED = ("global", "5 x 5", "3 x 3")
RECIPE = Recipe(batch_size=64, average=0.9)
EARLY, IMAGES = 20, 64


class StaticMixing(nn.Module):
    """Attention whose scores are learned, for each head, and the same for all images."""

    def __init__(self, patches: int, dim: int, heads: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(heads, patches, patches))
        self.values, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = self.scores if mask is None else self.scores.masked_fill(~mask, -torch.inf)
        v = self.values(x).unflatten(-1, (len(scores), -1)).transpose(1, 2)  # [batch, head, n, d]
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def vit(mixing: str) -> Model:
    """An untrained ViT, from torch's random numbers."""
    limits: dict[str, Any] = {"local": {"3 x 3": 3, "5 x 5": 5}.get(mixing)}
    if "windows" in mixing:
        limits = {"window": WINDOW}
    model: Any = minivit.create("vit_8px", **SIZES, **limits)
    for i, block in enumerate(model.blocks):
        if mixing.startswith("static"):
            heads = 1 if mixing.endswith("1 head") else SIZES["heads"]
            block.attention = StaticMixing(GRID[0] * GRID[1], SIZES["dim"], heads)
        elif mixing == "shifted windows" and i % 2:  # as every other block of a Swin
            shifted = window_mask(GRID, WINDOW, shift=WINDOW // 2)
            block.attention.register_forward_pre_hook(lambda _, x, mask=shifted: (x[0], mask))
    return model


def measured(mixing: str, amount: str, times: int) -> Figures:
    """Scores after ``times`` as many steps."""
    recipe = replace(RECIPE, steps=times * STEPS[amount])
    training = partial(on_digits, partial(vit, mixing), amount, recipe)
    figures = after(times, training, SEEDS, "reach", f"{mixing}, {amount}")
    figures["parameters"] = sum(p.numel() for p in vit(mixing).parameters())
    return figures | {"steps": recipe.steps}


def curvature(mixing: str) -> Figures:
    """Of models early in training, shares of negative curvature and largest eigenvalues."""
    rows = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        recipe = replace(RECIPE, steps=STEPS["all"], learning_rate=3e-3, seed=seed)
        run = Run(vit(mixing), load_data("DIGITS"), recipe)
        while run.step < EARLY:
            run.advance()
        part = spread(run.data.train, IMAGES)
        images = (part.images.float() / 255 - run.mean) / run.std
        how: dict[str, Any] = {"probes": 2, "steps": 15, "label_smoothing": 0.1}
        early = density(run.model, images, part.labels, seed=1 + seed, **how)
        negative = {"negative": early.negative.mean, "negative_half": early.negative.half}
        rows.append(negative | {"top": early.points.max()})
    return over_seeds(rows)


KINDS = [(m, "all") for m in MIXING] + [(m, "tenth") for m in FEW]
ROWS = {named(", ".join(kind), n): partial(measured, *kind, n) for kind in KINDS for n in TIMES}
ROWS |= {f"{mixing}, curvature": partial(curvature, mixing) for mixing in CURVED}
STUDY = Survey("reach", ROWS, SEEDS)
