"""Can images be recovered exactly from the last block?

``unwinding``: images that a model was not trained on, in float64; fewer where each search takes
minutes; and 20 others, where all of these come back. ``inversion_by_descent``: how near gradient
descent comes to the same images. ``unwinding_from_nearby``: where images are not found, the last
resort, the search to the pixels, begins at the image plus noise: where it arrives, the tokens hold
it.
"""

import math
from collections import Counter
from typing import Any

import torch
from torch import Tensor

import minivit
from studies.runner.survey import Figures, by_row
from studies.shared import inputs
from studies.shared.recovery import psnr_of_each, start
from vitlab.calls import activation
from vitlab.data.photographs import crops
from vitlab.inversion import Told, Unwound, decibels, invert, noise, unwind
from vitlab.krylov import norms

PICTURES = 20
OTHERS = slice(40, 60)  # of the shuffled test pictures
FEW = {"vit_b_16 untrained": 1, "cifar10_vit": 4}
TRAINED = [f"cifar10_{kind}" for kind in ("vit_gap", "vit_cls", "vit", "attention_only")]
TRAINED = ["digits_vit", "digits_mixer", *TRAINED, "cifar10_mixer", "cifar10_feedforward"]
NOT_ALL = ("cifar10_vit", "cifar10_mixer", "cifar10_feedforward")  # of their images come back
UNTRAINED = ("vit_32px untrained", "mixer_32px untrained", "vit_b_16 untrained")
ENOUGH = 120  # dB
DESCENT = 120  # steps
NEARBY = 4  # images
NOISE = (0.01, 0.1, 0.3)  # its standard deviation, as a fraction of that of the images
SEARCH = 4000  # steps of L-BFGS, as many as unwind takes


def model_and_images(row: str, which: str = "few") -> tuple[Any, Tensor]:
    """A row's model, and images that it has not seen: a few of 20, "all" of them, or "others"."""
    name, _, untrained = row.partition(" ")
    if untrained:
        torch.manual_seed(0)
        model: Any = minivit.create(name).eval()
        images = (crops(PICTURES, model.config.image_size)[0] / 255 - 0.5) / 0.25
    else:
        model = minivit.load(name)
        data = "DIGITS" if name.startswith("digits") else "CIFAR10"
        images = inputs.pictures(data, PICTURES).images
        if which == "others":
            images = inputs.shuffled(data, 1000).images[OTHERS][:PICTURES]
        images = model.preprocess(images)
    return model, images[:: PICTURES // FEW.get(row, PICTURES) if which == "few" else 1]


def unwound(row: str) -> Figures:
    figures = led_back(*model_and_images(row))
    if row in TRAINED and row not in NOT_ALL:
        figures["others"] = led_back(*model_and_images(row, "others"))["exact"]
    return figures


def led_back(model: Any, images: Tensor) -> Figures:
    """How near to each image unwinding its last tokens ends, and how often block by block."""
    model, images = model.double(), images.double()
    at = f"blocks.{len(model.blocks) - 1}"
    with torch.no_grad():
        tokens = [activation(model, at)(image) for image in images.split(1)]
    ways = [unwind(model, one, at) for one in tokens]
    psnr = [nearness(way.image, image) for way, image in zip(ways, images.split(1), strict=True)]
    return {
        "pictures": len(psnr),
        "exact": sum(int(way.exact) for way in ways),
        "enough": sum(near is None or near >= ENOUGH for near in psnr),  # none: no error at all
        "psnr": psnr,
        "ways": Counter("block by block" for way in ways if straight(way)),
    }


def nearness(found: Tensor, image: Tensor) -> float | None:
    """How near one image is to another in dB; none where there is no error at all."""
    near = decibels(norms(found - image), image).item()
    return round(near, 1) if math.isfinite(near) else None


def straight(way: Unwound) -> bool:
    """Whether no stage of unwinding one image went astray."""
    return not any(
        stage.error > (way.tolerance if "pixels" in stage.name else 1e-8) for stage in way.stages
    )


def by_descent(row: str) -> Figures:
    """dB of every image as gradient descent finds it, in float32, and as at its start."""
    model, images = model_and_images(row)
    at = f"blocks.{len(model.blocks) - 1}"
    way: Any = invert(model.eval(), images, at=at, optimizer="gd", steps=DESCENT)
    return {
        "psnr": [round(value, 2) for value in way.psnr.tolist()],
        "start": psnr_of_each(start(images), images),
    }


def from_nearby(row: str) -> Figures:
    """How near to each image the search begins and ends, in dB, for every size of the noise."""
    model, images = model_and_images(row)
    model, images = model.double(), images[:: len(images) // NEARBY].double()
    at = f"blocks.{len(model.blocks) - 1}"
    reader = Told(model, at).eval()
    with torch.no_grad():
        tokens = activation(model, at)(images)
    figures: Figures = {"began": [], "ended": []}
    for fraction in NOISE:
        starts = images + fraction * images.std() * noise(images, seed=0)
        ended = [
            reader.images(invert(reader, target=target, start=begin, steps=SEARCH).image)
            for target, begin in zip(tokens.split(1), reader.told(starts).split(1), strict=True)
        ]
        for name, guesses in (("began", starts), ("ended", torch.cat(ended))):
            near = decibels(norms(guesses - images), images).tolist()
            figures[name].append([round(value, 1) for value in near])
    return {"noise": NOISE, **figures}


NOT_FOUND = ("cifar10_mixer", "cifar10_vit")
unwinding = by_row("unwinding", unwound, (*TRAINED, *UNTRAINED), digits="")
inversion_by_descent = by_row("inversion_by_descent", by_descent, TRAINED, digits="")
unwinding_from_nearby = by_row("unwinding_from_nearby", from_nearby, NOT_FOUND, digits="")
