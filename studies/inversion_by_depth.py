"""Which optimiser recovers what, by depth?

Trained and untrained, ViT and ResNet, from the first, a middle and the last block: two photographs
that no model has seen, 120 steps of each optimiser from the source's start, and of L-BFGS from a
first guess where tokens allow one. In float32.
"""

from typing import Any

import torch
from torch import Tensor, nn

import minivit
from minivit.vit import ViT
from studies.inversion_in_miniature import brought_back
from studies.runner.survey import Survey
from vitlab.calls import activation
from vitlab.data.photographs import photograph
from vitlab.inversion import invert, linear_guess

NAMES = ("astronaut", "chelsea")
BLOCKS = (0, 2, 5)
STEPS = 120
MODELS = ("cifar10_vit_gap", "vit_32px untrained", "cifar10_resnet", "resnet_32px untrained")


def made(row: str) -> nn.Module:
    """A row's model; the untrained ones are of the trained ones' sizes."""
    name, _, untrained = row.partition(" ")
    if not untrained:
        return minivit.load(name).eval()
    torch.manual_seed(0)
    return minivit.create(name, **({"width": 32} if name == "resnet_32px" else {})).eval()


def measure(row: str) -> dict[str, Any]:
    model = made(row)
    preprocess = minivit.load(MODELS[0]).preprocess
    images = preprocess(torch.stack([photograph(name, 32) for name in NAMES]))
    figures: dict[str, Any] = {}
    for at in (f"blocks.{i}" for i in BLOCKS):
        starts: dict[str, Tensor | None] = {"gd": None, "adam": None, "lbfgs": None}
        if isinstance(model, ViT):
            with torch.no_grad():
                guess = linear_guess(model, at, activation(model, at)(images))
            starts["lbfgs, first guess"] = guess
        figures[at] = {}
        for name, start in starts.items():
            optimizer = name.split(",")[0]
            way = invert(model, images, at=at, optimizer=optimizer, steps=STEPS, start=start)
            figures[at][name] = brought_back(way)
    return figures


STUDY = Survey("inversion_by_depth", MODELS, measure)
