"""The source's descent by learning rate.

Gradient descent with a Gaussian after each step, through an untrained ViT-B/32 in miniature and an
untrained ResNet, from their first and last blocks: a photograph, ten seeds, in float32.
"""

from typing import Any

import torch

import minivit
from minivit.model import Model
from studies.inversion_in_miniature import astronaut, brought_back, miniature
from studies.runner.survey import Survey
from vitlab.inversion import Diverged, invert

SEEDS = tuple(range(10))
STEP_SIZES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
STEPS, BLUR = 100, 2.4


def measure(row: str) -> dict[str, Any]:
    """What each learning rate leaves; none where it diverges."""
    seed = int(row.removeprefix("seed "))
    torch.manual_seed(seed)
    models = {"resnet": minivit.create("resnet_32px").eval(), "vit": miniature(seed)}
    return {
        name: {
            at: {str(size): by_descent(model, at, size) for size in STEP_SIZES}
            for at in ("blocks.0", "blocks.5")
        }
        for name, model in models.items()
    }


def by_descent(model: Model, at: str, step_size: float) -> dict[str, Any] | None:
    how: dict[str, Any] = {"step_size": step_size, "blur": BLUR, "steps": STEPS}
    try:
        return brought_back(invert(model, astronaut(), at=at, optimizer="gd", **how))
    except Diverged:
        return None


STUDY = Survey("inversion_rates", [f"seed {seed}" for seed in SEEDS], measure, SEEDS)
