"""How near does gradient descent come to images that are known to be in the tokens?.

The images of the study ``unwinding``, from the last block of the same models: gradient descent from
the source's start, in float32.
"""

from typing import Any

from studies.runner.survey import Survey
from studies.shared.recovery import start
from studies.unwinding import TRAINED, made
from vitlab.inversion import decibels, invert
from vitlab.krylov import norms

STEPS = 120


def measure(row: str, rehearsal: bool) -> dict[str, Any]:
    """PSNR of every image, as found, and as at the start."""
    model, images = made("digits_vit" if rehearsal else row)
    at = f"blocks.{len(model.blocks) - 1}"
    steps = 2 if rehearsal else STEPS
    found = invert(model.eval(), images, at=at, optimizer="gd", steps=steps)
    assert found.psnr is not None  # for mypy
    began = decibels(norms(start(images) - images), images)
    return {
        "psnr": [round(value, 2) for value in found.psnr.tolist()],
        "start": [round(value, 2) for value in began.tolist()],
        "met": found.met,
    }


STUDY = Survey("inversion_by_descent", list(TRAINED), measure)
