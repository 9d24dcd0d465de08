"""Can a model learn random labels by heart? ``python -m studies.labels --help``

2,000 pictures, each with a class drawn at random, 80 times over; no augmentation.
"""

import sys
from dataclasses import replace

from studies.command import Study, main
from studies.one import Run
from studies.small import NOTHING, search, variants

PICTURES, STEPS = 2_000, 1_200


def finals(family: str, best: Run) -> list[Run]:
    """A row's run."""
    learnt = variants(best, [0], PICTURES, **NOTHING, steps=STEPS)
    return [replace(run, random_labels=True) for run in learnt]


STUDY = Study("labels", {family: search(family) for family in ("resnet", "vit")}, finals)

if __name__ == "__main__":
    sys.exit(main(STUDY))
