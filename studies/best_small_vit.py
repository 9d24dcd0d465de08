"""Which small ViT is the best that a short training gives?

A linear map per patch and a convolutional stem compete in short trainings, at the same rates; the
better goes on to a long one.
"""

from dataclasses import replace

from studies.runner.run import Run
from studies.runner.study import Study
from studies.shared.small_models import RATES, RECIPE, rates

STEMS = (Run("vit_32px", {}, RECIPE), Run("vit_32px", {"stem": "conv"}, RECIPE))
STEPS = 13_000  # 37 epochs, about 100 minutes of one thread


STUDY = Study(
    "best_small_vit",
    {"cifar10_vit": [run for stem in STEMS for run in rates(stem, RATES)]},
    lambda name, best: [replace(best, recipe=replace(best.recipe, steps=STEPS, average=0.999))],
)
