"""One small model of each family on digits, seconds each.

The same rates are tried for every family. With 179 images to validate on, rates that differ by less
than two points or so cannot be told apart.
"""

from studies.runner.run import Run
from studies.runner.study import Study
from studies.shared.small_models import rates, variants
from vitlab.training.recipe import DEFAULTS

MODELS = {"digits_vit": "vit_8px", "digits_mixer": "mixer_8px", "digits_resnet": "resnet_8px"}
_, RECIPE = DEFAULTS["DIGITS"]

STUDY = Study(
    "digits",
    {
        name: rates(Run(model, {}, RECIPE, data="DIGITS"), (1e-3, 3e-3, 1e-2))
        for name, model in MODELS.items()
    },
    lambda name, best: variants(best, range(5)),
)
