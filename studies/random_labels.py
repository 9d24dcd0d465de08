"""Can a model memorise random labels?

2,000 images, each with a class drawn at random, 80 times over; no augmentation.
"""

from dataclasses import replace

from studies.runner.run import Run
from studies.runner.study import Study
from studies.shared.small_models import NOTHING, search, variants

PICTURES, STEPS = 2_000, 1_200


def finals(family: str, best: Run) -> list[Run]:
    """A row's run."""
    learnt = variants(best, [0], PICTURES, **NOTHING, steps=STEPS)
    return [replace(run, random_labels=True) for run in learnt]


STUDY = Study("random_labels", {family: search(family) for family in ("resnet", "vit")}, finals)
