"""Patches against a convolutional stem, at equal training time.

Vision transformers of three widths with either stem (Xiao et al. 2021), in trainings so short that
they tell how fast a model learns. At the middle width four rates, to see which stem tolerates more.
"""

from dataclasses import replace

from studies.runner.run import Run
from studies.runner.study import Study
from studies.shared.small_models import WEAK, rates, variants

STEPS = 300  # of the ViT with patches, 64 images each
# Images a second in training with a convolutional stem over those with patches, by width, as
# measured by interleaved steps on one thread in bfloat16.
SPEED = {32: 0.9, 64: 0.97, 128: 0.95}
RATES = {32: (1e-3, 3e-3), 64: (3e-4, 1e-3, 3e-3, 1e-2), 128: (1e-3, 3e-3)}


def searched(stem: str, dim: int) -> list[Run]:
    """The trainings of one row, one a rate."""
    changes = {"dim": dim, "heads": dim // 32, "stem": stem}
    steps = round(STEPS * (SPEED[dim] if stem == "conv" else 1))
    recipe = replace(WEAK, steps=steps, batch_size=64, average=0.98)
    return rates(Run("vit_32px", changes, recipe), RATES[dim])


STUDY = Study(
    "stems",
    {f"{stem}_{dim}": searched(stem, dim) for dim in RATES for stem in ("patch", "conv")},
    lambda name, best: variants(best, range(3)),
)
