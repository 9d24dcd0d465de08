"""One part of a small ViT's blocks replaced at a time: at which learning rates it still learns.

A row named as a part has accuracy and largest score, by rate; one that ends in ``at best`` has the
log-likelihood of test digits at the best of bracketed rates.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

import minivit
from minivit.model import Model
from minivit.parts import GatedMLP, add_layer_scale
from studies.runner.survey import Figures, Survey
from studies.shared.lengths import at_best_rate, named
from studies.shared.training import fitted
from vitlab.convert.modern import ParallelBlock, RotaryAttention, Rotation, axial_angles
from vitlab.data import load_data
from vitlab.training import Recipe, evaluate, train

SEEDS = range(5)
RATES = 1e-2, 3e-2, 1e-1, 3e-1
STEPS = 150
TIMES = 1, 3  # as many steps
PARTS = "plain", "rotary", "rms", "qk", "swiglu", "scale", "parallel", "today"


def changed(part: str, dim: int = 32, heads: int = 2, depth: int = 2) -> Model:
    """A ViT of digits with one part of its blocks replaced; ``today`` has all of them."""
    model: Any = minivit.create("vit_8px", dim=dim, depth=depth, heads=heads)
    hidden, grid = model.config.hidden, model.config.grid

    def has(name: str) -> bool:
        return part in (name, "today")

    for i, block in enumerate(model.blocks):
        if has("parallel"):
            block = model.blocks[i] = ParallelBlock(dim, heads, hidden)
        if has("rotary") or has("qk"):
            angles = axial_angles(grid, dim // heads // 2)
            rotation = Rotation(angles.cos(), angles.sin()) if has("rotary") else nn.Identity()
            norm = nn.LayerNorm if has("qk") else nn.Identity
            attention = RotaryAttention(dim, heads, rotation, norm)
            attention.load_state_dict(block.attention.state_dict(), strict=False)
            block.attention = attention
        if has("swiglu"):
            block.mlp = GatedMLP(dim, 2 * hidden // 3)
        if has("scale"):
            for branch in (block.attention, block.mlp):
                add_layer_scale(branch, dim, 0.1)
    if has("rms"):
        for inside in [model, *model.blocks, *(b.attention for b in model.blocks)]:
            for name, norm in list(inside.named_children()):
                if isinstance(norm, nn.LayerNorm):
                    setattr(inside, name, nn.RMSNorm(norm.normalized_shape, eps=1e-6))
    return minivit.remove(model, "positions") if has("rotary") else model


def rates(part: str, times: int) -> Figures:
    """Accuracy and largest score of the seeds, ``[seeds, rates]``, the same at the next rates."""
    rows = [[trained(part, times, rate, seed) for rate in RATES] for seed in SEEDS]
    both: Figures = {k: [[one[k] for one in row] for row in rows] for k in ("accuracy", "score")}
    later = {key: [row[1:] for row in table] for key, table in both.items()}
    return both | {"rates": RATES, "steps": times * STEPS, "next": later}


def trained(part: str, times: int, rate: float, seed: int) -> Figures:
    data = load_data("DIGITS")
    recipe = Recipe(steps=times * STEPS, batch_size=64, learning_rate=rate, average=0)
    model, accuracy = fitted(partial(changed, part), data, recipe, seed)
    preprocess: Any = model.preprocess
    with torch.no_grad(), minivit.record(model, "blocks.*.attention.scores") as seen:
        model(preprocess(data.test.images))
    return {"accuracy": accuracy, "score": max(s.abs().max().item() for s in seen.values())}


def at_best(part: str, times: int) -> Figures:
    """Log-likelihood of test digits at the best rate and the next, and along the training."""
    training = partial(followed, part, times)
    figures = at_best_rate(training, SEEDS, 1e-2, f"block of today {part}, {times} x")
    return figures | {"steps": times * STEPS}


def followed(part: str, times: int, rate: float, seed: int) -> Figures:
    data = load_data("DIGITS")
    recipe = Recipe(steps=times * STEPS, batch_size=64, learning_rate=rate, average=0, seed=seed)
    torch.manual_seed(seed)
    model = changed(part)
    lines = train(model, replace(data, validation=data.test), recipe).lines
    held_out = evaluate(model, data.validation)
    return {
        "test": lines[-1]["validation"]["log_likelihood"],
        "accuracy": lines[-1]["validation"]["accuracy"],
        "validation": held_out.accuracy,
        "likelihood": held_out.log_likelihood,
        "curve": [[x["step"], x["loss"], x["validation"]["log_likelihood"]] for x in lines],
    }


SEARCHED = "plain", "rms", "swiglu"
ROWS = {part: partial(rates, part, 1) for part in PARTS}
ROWS |= {named(part, 3): partial(rates, part, 3) for part in ("plain", "qk")}
ROWS |= {named(f"{part} at best", n): partial(at_best, part, n) for part in SEARCHED for n in TIMES}
STUDY = Survey("block_of_today", ROWS, SEEDS)
