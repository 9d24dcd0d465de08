"""ViTs and Mixers with residuals and without, by depth. ``python -m studies.residual --help``

Each row searches for its own rate: what trains without residuals may want another. Patches of 8
pixels, so 16 tokens, make deep models cheap.
"""

import sys
from dataclasses import replace

from studies.command import Study, main
from studies.one import Run
from studies.small import MODELS, SHORT, variants

RATES = (1e-4, 3e-4, 1e-3, 3e-3)
DEPTHS = (4, 8, 16)
STEPS = 350


def searched(family: str, depth: int, residual: bool) -> list[Run]:
    """The trainings of a row, one a rate."""
    model, changes = MODELS[family]
    changes = changes | {"patch_size": 8, "depth": depth, "residual": residual}
    recipe = replace(SHORT, steps=STEPS)
    return [Run(model, changes, replace(recipe, learning_rate=rate)) for rate in RATES]


STUDY = Study(
    "residual",
    {
        f"{family}_{depth}{'' if residual else '_no_residual'}": searched(family, depth, residual)
        for family in ("vit", "mixer")
        for depth in DEPTHS
        for residual in (True, False)
    },
    lambda name, best: variants(best, range(3)),
)

if __name__ == "__main__":
    sys.exit(main(STUDY))
