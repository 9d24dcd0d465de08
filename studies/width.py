"""Fully connected networks, narrow and wide. ``python -m studies.width --help``

A ViT whose patch is the picture, without attention, norms, residuals and positions, is one: 3,072
inputs, then twice a hidden layer with a GELU. It learns 2,000 pictures without augmentation.
"""

import sys
from dataclasses import replace

from studies.command import Study, main
from studies.one import Run
from studies.small import NOTHING, SHORT, WHOLE, variants

PICTURES = 2_000
WIDTHS = (16, 64, 256, 1024)
RATES = (3e-4, 1e-3)
CONNECTED = {"patch_size": 32, "attention": False, "norm": "none", "residual": False,
             "positions": "none", "depth": 2, "heads": 1, "mlp_ratio": 1}  # fmt: skip
RECIPE = replace(SHORT, steps=800, **NOTHING)


def searched(width: int) -> list[Run]:
    """The trainings of a row, one a rate."""
    return [
        Run("vit_32px", CONNECTED | {"dim": width}, replace(RECIPE, learning_rate=rate),
            fraction=PICTURES / WHOLE)
        for rate in RATES
    ]  # fmt: skip


STUDY = Study(
    "width",
    {f"width_{width}": searched(width) for width in WIDTHS},
    lambda name, best: variants(best, range(3), PICTURES),
)

if __name__ == "__main__":
    sys.exit(main(STUDY))
