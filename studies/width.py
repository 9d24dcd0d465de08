"""Fully connected networks, narrow and wide.

A ViT whose patch is the image, without attention, norms, residuals and positions, is one: 3,072
inputs, then twice a hidden layer with a GELU. It learns 2,000 images without augmentation.

All stored rows were created without these parts, and so began with other weights than a ViT from
which they are removed.
"""

from dataclasses import replace

from studies.runner.run import Run
from studies.runner.study import Study
from studies.shared.small_models import NOTHING, SHORT, WHOLE, rates, variants

PICTURES = 2_000
CONNECTED = Run(
    "vit_32px",
    {"patch_size": 32, "depth": 2, "heads": 1, "mlp_ratio": 1},
    replace(SHORT, steps=800, **NOTHING),
    fraction=PICTURES / WHOLE,
    removed=("attention", "norm", "positions", "residual"),
)


def searched(width: int) -> list[Run]:
    """The trainings of a row, one a rate."""
    return rates(replace(CONNECTED, changes=CONNECTED.changes | {"dim": width}), (3e-4, 1e-3))


STUDY = Study(
    "width",
    {f"width_{width}": searched(width) for width in (16, 64, 256, 1024)},
    lambda name, best: variants(best, range(3), PICTURES),
)
