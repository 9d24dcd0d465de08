"""The source's descent by learning rate.

Gradient descent with a Gaussian after each step, through an untrained ViT-B/32 in miniature and an
untrained ResNet, from their first and last blocks: a photograph, ten seeds, in float32.
"""

from typing import Any

import torch

import minivit
from studies.inversion_in_miniature import astronaut, brought_back, miniature
from studies.runner.survey import Survey
from vitlab.inversion import Diverged, invert

SEEDS = tuple(range(10))
STEP_SIZES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
STEPS, BLUR = 100, 2.4


def measure(row: str, rehearsal: bool) -> dict[str, Any]:
    """What each learning rate leaves; none where it diverges."""
    seed = int(row.removeprefix("seed "))
    torch.manual_seed(seed)
    models = {"resnet": minivit.create("resnet_32px").eval(), "vit": miniature(seed)}
    found: dict[str, Any] = {}
    for name, model in models.items():
        for at in ("blocks.0", "blocks.5"):
            rates = found.setdefault(name, {})[at] = dict[str, Any]()
            for rate in STEP_SIZES:
                try:
                    run = invert(
                        model,
                        astronaut(),
                        at=at,
                        optimizer="gd",
                        step_size=rate,
                        blur=BLUR,
                        steps=2 if rehearsal else STEPS,
                    )
                    rates[str(rate)] = brought_back(run)
                except Diverged:
                    rates[str(rate)] = None
    return found


STUDY = Survey("inversion_rates", [f"seed {seed}" for seed in SEEDS], measure, SEEDS)
