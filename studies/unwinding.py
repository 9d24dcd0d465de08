"""Can images be recovered exactly from the last block?

``unwinding``: images that a model was not trained on, in float64; fewer where each search takes
minutes; and 20 others, where all of these come back. ``inversion_by_descent``: how near gradient
descent comes to the same images. ``unwinding_from_nearby``: where images are not found, the last
resort, the search to the pixels, begins at the image plus noise: where it arrives, the tokens hold
it. ``unwinding_after_a_climb``: the start is an image that ``Climb`` finds from the same tokens,
after it has seen 3,000 pictures of the training set; for the 20 images that were looked at while it
was built, and for 20 others, that were named before the code that they were measured with (the
first 40 others have been seen since). Where a stem's ReLUs hide directions of an image, it cannot
come back, and is only counted.
"""

import math
import time
from collections import Counter
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.parts import ConvStem
from studies.runner.survey import Figures, by_row, over_seeds
from studies.shared import inputs
from studies.shared.recovery import psnr_of_each, start
from vitlab.calls import activation
from vitlab.data.photographs import crops
from vitlab.inversion import (
    Climb,
    Told,
    Unwound,
    decibels,
    hidden_directions,
    invert,
    noise,
    unwind,
)
from vitlab.inversion.solvers import rank_of
from vitlab.inversion.stem import StemInverse
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
LEARNED_FROM = 3000  # pictures


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
    """How near to each image unwinding its last tokens ends, and where it failed."""
    model, images = model.double(), images.double()
    at = f"blocks.{len(model.blocks) - 1}"
    psnr: list[float | None] = []
    exact = 0
    ways = Counter[str]()
    for image in images.split(1):
        with torch.no_grad():
            tokens = activation(model, at)(image)
        result = unwind(model, tokens, at)
        psnr.append(nearness(result.image, image))
        exact += int(result.exact)
        ways[way(result)] += 1
    figures = {
        "pictures": len(psnr),
        "exact": exact,
        "enough": sum(near is None or near >= ENOUGH for near in psnr),  # none: no error at all
        "psnr": psnr,
        "ways": dict(ways),
    }
    if isinstance(model.patch_embedding, ConvStem):  # closed ReLUs may hide directions of an image
        hidden = (hidden_directions(model.patch_embedding, image) for image in images.split(1))
        figures["hidden"] = [len(directions) for directions in hidden]
    return figures


def nearness(found: Tensor, image: Tensor) -> float | None:
    """How near one image is to another in dB; none where there is no error at all."""
    near = decibels(norms(found - image), image).item()
    return round(near, 1) if math.isfinite(near) else None


def way(result: Unwound) -> str:
    """How unwinding one image ended, and what failed before."""
    stages = result.stages
    astray = [s for s in stages if s.error > (result.tolerance if "pixels" in s.name else 1e-8)]
    last = stages[-1].name if result.exact else "nowhere"
    if not astray:
        return "block by block"
    if reasons := [reason for stage in stages for reason in stage.stopped]:
        return f"{reasons[0]}, then {last}"
    first = astray[0].name
    what = "other tokens" if "pixels" in first else f"no way through {first}"
    return f"{what}, then {last}"


def by_descent(row: str) -> Figures:
    """dB of every image as gradient descent finds it, in float32, and as at its start."""
    model, images = model_and_images(row)
    at = f"blocks.{len(model.blocks) - 1}"
    way: Any = invert(model.eval(), images, at=at, optimizer="gd", steps=DESCENT)
    return {
        "psnr": [round(value, 2) for value in way.psnr.tolist()],
        "start": psnr_of_each(start(images), images),
        "met": way.met,
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


def after_a_climb(row: str) -> Figures:
    """How near the climb comes to each image, and unwinding from there; CPU seconds of both."""
    model, images = model_and_images(row, "all")
    _, unseen = model_and_images(row, "others")
    known = images.flatten(1)[:, None] == unseen.flatten(1)
    assert not known.all(2).any(), "the others are others"
    pictures = model.preprocess(inputs.pictures("CIFAR10", LEARNED_FROM, "train").images)
    at = f"blocks.{len(model.blocks) - 1}"
    begin = time.process_time()
    climb = Climb(model.eval(), at, pictures)
    figures: Figures = {"learned": round(time.process_time() - begin)}
    double = deepcopy(model).double()
    for name, some in ("built on", images), ("others", unseen):
        if isinstance(double.patch_embedding, ConvStem):  # what is hidden is not looked for
            stem = StemInverse(double.patch_embedding, (32, 32))
            hidden = [lost(stem, image) for image in some.split(1)]
            figures[f"{name}, hidden"] = hidden
            some = some[[not number for number in hidden]]
        figures[name] = over_seeds(from_a_climb(climb, double, image) for image in some.split(1))
    return figures


def from_a_climb(climb: Climb, model: Any, image: Tensor) -> Figures:
    """The way back to one image: dB, solutions of each branch, which was taken, why it stopped.

    Branches are counted from 0: a Mixer's even ones are mixings, its odd ones MLPs.
    """
    image, at = image.double(), f"blocks.{len(model.blocks) - 1}"
    with torch.no_grad():
        tokens = activation(model, at)(image)
    begin = time.process_time()
    result = unwind(model, tokens, at, start=climb, steps=SEARCH)
    stages = result.stages
    assert result.start is not None  # for mypy
    return {
        "cpu": round(time.process_time() - begin),
        "climbed": nearness(result.start, image),
        "ended": nearness(result.image, image),
        "exact": bool(result.exact),
        "way": way(result),
        "found": [number for stage in stages for number in stage.found],
        "taken": [number for stage in stages for number in stage.taken],
        "off": [f"{number:.1e}" for stage in stages for number in stage.off],
        "stopped": "".join(reason for stage in stages for reason in stage.stopped),
    }


def lost(stem: StemInverse, image: Tensor) -> int:
    """How many directions of an image closed ReLUs hide."""
    every = torch.eye(image.numel()).double().view(-1, *image.shape[1:])
    rows = stem.push(image.double(), every, doubt=0).flatten(0, 1)
    return image.numel() - rank_of(torch.linalg.svdvals(rows), rows.shape)


NOT_FOUND = ("cifar10_mixer", "cifar10_vit")
CLIMBED = ("cifar10_feedforward", "cifar10_vit_patch", "cifar10_mixer", "cifar10_vit")
unwinding = by_row("unwinding", unwound, (*TRAINED, *UNTRAINED), digits="")
inversion_by_descent = by_row("inversion_by_descent", by_descent, TRAINED, digits="")
unwinding_from_nearby = by_row("unwinding_from_nearby", from_nearby, NOT_FOUND, digits="")
unwinding_after_a_climb = by_row("unwinding_after_a_climb", after_a_climb, CLIMBED, digits="")
