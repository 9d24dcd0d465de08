"""Which optimiser recovers what, by depth?

Trained and untrained, ViT and ResNet, from the first, a middle and the last block: two photographs
that no model has seen, 120 steps of each optimiser from the source's start, and of L-BFGS from a
first guess where tokens allow one. In float32.
"""

from typing import Any

import torch
from torch import Tensor

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


def measure(row: str) -> dict[str, Any]:
    """Every optimiser at each of the blocks; untrained models are of the trained ones' sizes."""
    kind, _, untrained = row.partition(" ")
    torch.manual_seed(0)
    sizes = {"width": 32} if kind == "resnet_32px" else {}
    model = (minivit.create(kind, **sizes) if untrained else minivit.load(kind)).eval()
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
            how: dict[str, Any] = {"optimizer": name.split(",")[0], "steps": STEPS, "start": start}
            figures[at][name] = brought_back(invert(model, images, at=at, **how))
    return figures


STUDY = Survey("inversion_by_depth", MODELS, measure)
