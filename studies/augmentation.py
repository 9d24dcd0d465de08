"""What augmentation does to accuracy and calibration.

On 5,000 images, each of which every training sees about 13 times. No row smooths the labels: that
alone would change how sure a model is.
"""

import minivit
from studies.runner.pool import weights_of
from studies.runner.storage import Place
from studies.runner.study import Rows, Runs, Study
from studies.shared.measures import confidence
from studies.shared.small_models import NOTHING, search, variants

PICTURES = 5_000
WEAK = NOTHING | {"shift": 0.125, "flip": True}
ROWS = {
    "none": NOTHING,
    "weak": WEAK,
    "strong": WEAK | {"operations": 2, "magnitude": 0.5, "mixup": 0.5, "cutout": 0.5},
}


def measure(finals: Runs, place: Place) -> Rows:
    """The mean confidence of the models on the test part, one number a seed."""
    rows: Rows = {}
    for name, runs in finals.items():
        models = (minivit.load(weights_of(run, place)) for run in runs)
        rows[name] = {"confidence": [confidence(model, runs[0].load().test) for model in models]}
    return rows


STUDY = Study(
    "augmentation",
    {name: search("vit") for name in ROWS},
    lambda name, best: variants(best, range(3), PICTURES, **ROWS[name]),
    measure,
)
