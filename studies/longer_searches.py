"""What do searches find that have more steps, a trained embedding, or more photographs?

The studies ``ablations`` and ``inversion_of_one_layer`` ask of untrained embeddings and few steps,
after which some searches have found nothing; and of norms that were cut out of a trained model.
Here untrained ViTs of 24 blocks get the embedding of the trained model, and descent 1,000 steps;
behind the last blocks of trained models L-BFGS gets a first guess and as many as 320 steps; and
attention with a residual connection is undone in the models trained with norms and without.
"""

import math
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.model import Model
from studies.inversion_of_one_layer import undone
from studies.runner.survey import Survey
from studies.shared.recovery import highlight, psnr, psnr_of_each, start, without
from vitlab.calls import activation
from vitlab.data.photographs import crops
from vitlab.inversion import Diverged, decibels, invert, linear_guess

SEEDS = range(5)
TRAINED = "cifar10_vit_gap"
# 48 numbers of a patch to 128 features, as in the trained model; the 24 blocks of ViT-L/16.
VIT: dict[str, Any] = {"patch_size": 4, "dim": 128, "heads": 4, "mlp_ratio": 4, "depth": 24}
DEPTHS = (1, 12, 24)
MANY = 1000  # steps of descent, the source's
BUDGETS = (25, 80, 320)  # steps of L-BFGS
PHOTOGRAPHS = 16  # for L-BFGS
UNDONE = 40  # photographs in which attention is undone


def measure(row: str) -> dict[str, Any]:
    kind, _, rest = row.partition(" ")
    if kind == "undo":
        return undo(rest)
    name, _, part = row.partition(" without ")
    return by_descent(without(made(name), part)) if kind == "vit" else by_lbfgs(name, part)


def photographs(number: int) -> Tensor:
    """Photographs as the trained model reads them, ``[number, 3, 32, 32]``."""
    images: Tensor = minivit.load(TRAINED).preprocess(crops(40, 32)[0][:number])
    return images


def made(name: str) -> Model:
    """``"vit 0"``: an untrained ViT of 24 blocks behind the embedding of a trained one."""
    torch.manual_seed(int(name.split()[1]))
    model = minivit.create("vit_32px", **VIT).eval()
    trained = minivit.load(TRAINED).state_dict().items()
    embedding = {name: values for name, values in trained if "patch_embedding" in name}
    model.load_state_dict(embedding, strict=False)
    return model


def by_descent(model: Model) -> dict[str, Any]:
    """By depth, for one photograph: dB after a tenth of the steps and after all.

    ``"met"``: the first step whose output is nearer than that of the slightly shifted image.
    ``None`` where it never was, and where descent ran away.
    """
    image = photographs(1)
    figures: dict[str, Any] = {"start": psnr(start(image), image)}
    figures |= {"tenth": {}, "psnr": {}, "met": {}}
    for depth in DEPTHS:
        values: tuple[float | None, ...] = (None, None, None)
        with suppress(Diverged):
            way = invert(model, image, at=f"blocks.{depth - 1}", optimizer="gd", steps=MANY)
            values = after(way, image, math.ceil(MANY / 10)), after(way, image, MANY), way.met[0]
        for key, value in zip(("tenth", "psnr", "met"), values, strict=True):
            figures[key][str(depth)] = value
    return figures


def after(way: Any, image: Tensor, evaluations: int) -> float:
    """dB of the input nearest in features among so many evaluations."""
    best = way.feature_distance[0, :evaluations].nan_to_num(torch.inf).argmin()
    return round(decibels(way.input_distance[:, best], image).item(), 2)


def by_lbfgs(name: str, part: str) -> dict[str, Any]:
    """Behind the last block, from a first guess: dB of each image, and where contrast was found.

    By number of steps. ``"start"`` has the dB of the noise that a search starts from otherwise, and
    ``"guess"`` those of the guess.
    """
    whole: Any = minivit.load(name).eval()
    model: Any = without(whole, part)
    images = photographs(PHOTOGRAPHS)
    at = f"blocks.{len(model.blocks) - 1}"
    with torch.no_grad():
        guess = linear_guess(model, at, activation(model, at)(images))
    results = {
        str(steps): invert(model, images, at=at, steps=steps, start=guess).image
        for steps in BUDGETS
    }
    return {
        "start": psnr_of_each(start(images), images),
        "guess": psnr_of_each(guess, images),
        "psnr": {steps: psnr_of_each(image, images) for steps, image in results.items()},
        "highlight": {steps: highlight(whole, images, image) for steps, image in results.items()},
    }


def undo(name: str) -> dict[str, Any]:
    """For each block: for how many photographs the inverse of the branch recovers the tokens."""
    model: Any = minivit.load(name).double().eval().requires_grad_(False)
    images = photographs(UNDONE).double()
    return {"photographs": UNDONE, "blocks": undone(model, images, True)}


NAMES = [
    *(f"{TRAINED}{part}" for part in ("", " without attention", " without mlp")),
    "cifar10_mixer",
    f"undo {TRAINED}",
    "undo cifar10_vit_no_norm",
    *(
        f"vit {seed}{part}"
        for seed in SEEDS
        for part in ("", " without norm", " without attention", " without mlp")
    ),
]
STUDY = Survey("longer_searches", NAMES, measure, seeds=SEEDS)
