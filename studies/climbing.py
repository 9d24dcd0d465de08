"""How far the way back leads that begins at an image which a climb finds from the same tokens.

``unwinding_after_a_climb``: the climb has seen 3,000 pictures of the training set, or crops of the
package's photographs. It is tried on the 20 images that were looked at while it was built, and on
20 others, which were named before the code that they were measured with (the first 40 others have
been seen since). Where a stem's ReLUs hide directions of an image, it cannot come back, and is only
counted. ``way_back``: one of the others, by level.
"""

import time
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from minivit.parts import ConvStem
from studies.runner.survey import Figures, by_row, over_seeds
from studies.shared import inputs
from studies.unwinding import SEARCH, model_and_images, nearness
from vitlab.calls import activation
from vitlab.data.photographs import crops
from vitlab.inversion import Climb, Unwound, unwind
from vitlab.inversion.chain import Chain
from vitlab.inversion.solvers import rank_of
from vitlab.inversion.stem import StemInverse
from vitlab.krylov import norms

LEARNED_FROM = 3000  # pictures
LOOKED_AT = 1  # of the others, by level


def taught(model: Any, source: str = "") -> Climb:
    """What finds a start for the last block of a model; from pictures of its data, or "crops"."""
    if source == "crops":
        pictures = crops(LEARNED_FROM)[0]
    else:
        pictures = inputs.pictures("CIFAR10", LEARNED_FROM, "train").images
    return Climb(model.eval(), f"blocks.{len(model.blocks) - 1}", model.preprocess(pictures))


def after_a_climb(row: str) -> Figures:
    """How near the climb comes to each image, and unwinding from there; CPU seconds of both."""
    name, _, source = row.partition(" from ")
    model, images = model_and_images(name, "all")
    _, unseen = model_and_images(name, "others")
    known = images.flatten(1)[:, None] == unseen.flatten(1)
    assert not known.all(2).any(), "the others are others"
    climb, double = taught(model, source), deepcopy(model).double()
    figures: Figures = {}
    parts = {"others": unseen} if source else {"built on": images, "others": unseen}
    for name, some in parts.items():
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
    assert result.start is not None  # for mypy
    return {
        "cpu": round(time.process_time() - begin),
        "climbed": nearness(result.start, image),
        "ended": nearness(result.image, image),
        "exact": bool(result.exact),
        **solutions(result),
        "stopped": "".join(reason for stage in result.stages for reason in stage.stopped),
    }


def solutions(result: Unwound) -> Figures:
    """How many there were of each branch that was undone, and which of them was taken."""
    ends = "found", "taken"
    return {end: [n for stage in result.stages for n in getattr(stage, end)] for end in ends}


def lost(stem: StemInverse, image: Tensor) -> int:
    """How many directions of an image closed ReLUs hide."""
    every = torch.eye(image.numel()).double().view(-1, *image.shape[1:])
    rows = stem.push(image.double(), every, doubt=0).flatten(0, 1)
    return image.numel() - rank_of(torch.linalg.svdvals(rows), rows.shape)


def by_level(row: str) -> Figures:
    """One image as the regression, the climb and the way back find it, with how far the tokens of
    each are off at every level, and the solutions found of the branches behind."""
    model, images = model_and_images(row, "others")
    image, climb = images[LOOKED_AT][None].double(), taught(model)
    model, at = deepcopy(model).double(), f"blocks.{len(model.blocks) - 1}"
    chain = Chain(model, at, torch.float64)
    states = chain.states(image)
    found = unwind(model, states[-1], at, start=climb)
    assert found.start is not None  # for mypy
    look = model.preprocess
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (look.mean, look.std))
    pictures = {"regression": climb.guess(states[-1]), "climb": found.start, "end": found.image}
    figures: Figures = {"stages": {}}
    for name, picture in ({"image": image} | pictures).items():
        picture = picture.double()
        off = [norms(x - y) / norms(y) for x, y in zip(chain.states(picture), states, strict=True)]
        figures["stages"][name] = {
            "psnr": nearness(picture, image),
            "off": [float(f"{number.item():.2e}") for number in off],
            "picture": inputs.encoded((picture[0] * std + mean).clamp(0, 1).permute(1, 2, 0)),
        }
    return figures | solutions(found)


CLIMBED = ["cifar10_feedforward", "cifar10_vit_patch", "cifar10_mixer", "cifar10_vit"]
CLIMBED += ["cifar10_mixer from crops"]
unwinding_after_a_climb = by_row("unwinding_after_a_climb", after_a_climb, CLIMBED, digits="")
way_back = by_row("way_back", by_level, ("cifar10_mixer",), digits="")
