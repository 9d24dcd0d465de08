"""ViTs and Mixers with residuals and without, by depth.

Each row searches for its own rate: what trains without residuals may want another. Patches of 8
pixels, so 16 tokens, make deep models cheap.
"""

from dataclasses import replace

from studies.runner.run import Run
from studies.runner.study import Study
from studies.shared.small_models import MODELS, rates, variants

RATES = (1e-4, 3e-4, 1e-3, 3e-3)
DEPTHS = (4, 8, 16)
STEPS = 350


def searched(family: str, depth: int, removed: tuple[str, ...]) -> list[Run]:
    """The trainings of a row, one a rate."""
    model = MODELS[family]
    changes = model.changes | {"patch_size": 8, "depth": depth}
    recipe = replace(model.recipe, steps=STEPS)
    return rates(replace(model, changes=changes, recipe=recipe, removed=removed), RATES)


STUDY = Study(
    "residual",
    {
        f"{family}_{depth}{end}": searched(family, depth, removed)
        for family in ("vit", "mixer")
        for depth in DEPTHS
        for end, removed in {"": (), "_no_residual": ("residual",)}.items()
    },
    lambda name, best: variants(best, range(3)),
)
