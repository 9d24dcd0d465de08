"""One small model of each family on digits, seconds each. ``python -m studies.digits --help``

The same rates are tried for every family. With 179 pictures to validate on, rates that differ by
less than two points or so cannot be told apart.
"""

import sys
from dataclasses import replace

from minivit.training.defaults import DEFAULTS
from studies.command import Study, main
from studies.one import Run

MODELS = {"digits_vit": "vit_8px", "digits_mixer": "mixer_8px", "digits_resnet": "resnet_8px"}
RATES = (1e-3, 3e-3, 1e-2)
SEEDS = range(5)
_, RECIPE = DEFAULTS["DIGITS"]

STUDY = Study(
    "digits",
    {
        name: [Run(model, recipe=replace(RECIPE, learning_rate=r), data="DIGITS") for r in RATES]
        for name, model in MODELS.items()
    },
    lambda name, best: [replace(best, recipe=replace(best.recipe, seed=s)) for s in SEEDS],
)

if __name__ == "__main__":
    sys.exit(main(STUDY))
