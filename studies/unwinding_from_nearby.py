"""How near must the search over pixels begin?

For the trained models whose images :mod:`studies.unwinding` does not find, its last resort, the
search to the pixels, begins here at the image plus noise. Where it arrives, the tokens hold it.
"""

from typing import Any

import torch

from studies.runner.survey import Survey
from studies.unwinding import model_and_images
from vitlab.calls import activation
from vitlab.inversion import Told, decibels, invert, noise
from vitlab.krylov import norms

PICTURES = 4
NOISE = (0.01, 0.1, 0.3)  # its standard deviation, as a fraction of that of the images
STEPS = 4000  # of L-BFGS, as many as unwind takes


def measure(row: str) -> dict[str, Any]:
    """How near to each image the search begins and ends, in dB, for every size of the noise."""
    model, images = model_and_images(row)
    model, images = model.double(), images[:: len(images) // PICTURES].double()
    at = f"blocks.{len(model.blocks) - 1}"
    reader = Told(model, at).eval()
    with torch.no_grad():
        tokens = activation(model, at)(images)
    figures: dict[str, Any] = {"began": [], "ended": []}
    for fraction in NOISE:
        starts = images + fraction * images.std() * noise(images, seed=0)
        ended = [
            reader.images(invert(reader, target=target, start=start, steps=STEPS).image)
            for target, start in zip(tokens.split(1), reader.told(starts).split(1), strict=True)
        ]
        for name, guesses in (("began", starts), ("ended", torch.cat(ended))):
            near = decibels(norms(guesses - images), images).tolist()
            figures[name].append([round(value, 1) for value in near])
    return {"noise": NOISE, **figures}


STUDY = Survey("unwinding_from_nearby", ["cifar10_mixer", "cifar10_vit"], measure)
