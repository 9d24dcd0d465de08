"""What augmentation does to accuracy and calibration. ``python -m studies.augmentation --help``

On 5,000 pictures, which every training sees about 13 times. No row smooths the labels: that alone
would change how sure a model is.
"""

import sys
from collections.abc import Mapping, Sequence

import minivit
from studies.command import Rows, Study, main
from studies.measures import confidence
from studies.one import Place, Run
from studies.pool import trained
from studies.small import NOTHING, search, variants

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


def measure(finals: Mapping[str, Sequence[Run]], place: Place) -> Rows:
    """How sure the models are on the test part, on average, one number a seed."""
    return {
        name: {
            "confidence": [
                confidence(minivit.load(trained(run, place)), run.load().test) for run in runs
            ]
        }
        for name, runs in finals.items()
    }


STUDY = Study("augmentation", {name: search("vit") for name in ROWS}, finals, measure)

if __name__ == "__main__":
    sys.exit(main(STUDY))
