"""What augmentation does to accuracy and calibration.

On 5,000 images, each of which every training sees about 13 times. No row smooths the labels: that
alone would change how sure a model is.
"""

import minivit
from studies.runner.pool import weights_of
from studies.runner.run import Run
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


def finals(name: str, best: Run) -> list[Run]:
    """A row's runs."""
    return variants(best, range(3), PICTURES, **ROWS[name])


def measure(finals: Runs, place: Place) -> Rows:
    """The mean confidence of the models on the test part, one number a seed."""
    return {
        name: {
            "confidence": [
                confidence(minivit.load(weights_of(run, place)), run.load().test) for run in runs
            ]
        }
        for name, runs in finals.items()
    }


STUDY = Study("augmentation", {name: search("vit") for name in ROWS}, finals, measure)
