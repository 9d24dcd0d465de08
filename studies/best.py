"""The best small ViT that a short training gives. ``python -m studies.best --help``

A linear map per patch and a convolutional stem compete in short trainings, at the same rates; the
better goes on to a long one.
"""

import sys
from dataclasses import replace
from typing import Any

from studies.command import Study, main
from studies.families import RECIPE
from studies.one import Run

RATES = (1e-3, 3e-3)
STEMS: tuple[dict[str, Any], ...] = ({}, {"stem": "conv"})
STEPS = 13_000  # 37 epochs, about 100 minutes of one thread

STUDY = Study(
    "best",
    {
        "cifar10_vit": [
            Run("vit_32px", stem, replace(RECIPE, learning_rate=rate))
            for stem in STEMS
            for rate in RATES
        ]
    },
    lambda name, best: [
        replace(best, recipe=replace(best.recipe, steps=STEPS, average=0.999)),
    ],
)

if __name__ == "__main__":
    sys.exit(main(STUDY))
