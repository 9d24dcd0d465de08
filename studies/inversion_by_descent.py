"""How near does gradient descent come to images that are known to be in the tokens?

The images of the study ``unwinding``, from the last block of the same models: gradient descent from
the source's start, in float32.
"""

from typing import Any

from studies.runner.survey import Survey
from studies.shared.recovery import psnr_of_each, start
from studies.unwinding import TRAINED, model_and_images
from vitlab.inversion import invert

STEPS = 120


def measure(row: str) -> dict[str, Any]:
    """PSNR of every image, as found, and as at the start."""
    model, images = model_and_images(row)
    at = f"blocks.{len(model.blocks) - 1}"
    way = invert(model.eval(), images, at=at, optimizer="gd", steps=STEPS)
    assert way.psnr is not None  # for mypy
    return {
        "psnr": [round(value, 2) for value in way.psnr.tolist()],
        "start": psnr_of_each(start(images), images),
        "met": way.met,
    }


STUDY = Survey("inversion_by_descent", list(TRAINED), measure)
