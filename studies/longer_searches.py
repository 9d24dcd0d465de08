"""What do searches find that have more steps, a trained embedding, or more photographs?

Where ``ablations`` and ``inversion_of_one_layer`` have untrained embeddings, few steps and norms
cut out of a trained model, here are an embedding from the trained model, 1,000 steps of descent,
320 of L-BFGS from a first guess, and models trained without norms.
"""

import math
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor

import minivit
from studies.inversion_of_one_layer import undone
from studies.runner.survey import Figures, Survey
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


def photographs(number: int) -> Tensor:
    """Photographs as the trained model reads them, ``[number, 3, 32, 32]``."""
    images: Tensor = minivit.load(TRAINED).preprocess(crops(40, 32)[0][:number])
    return images


def by_descent(seed: int, part: str) -> Figures:
    """Of an untrained ViT of 24 blocks behind the embedding of a trained one, by depth.

    dB of a photograph after a tenth of the steps and after all; the first step whose output is
    nearer than that of the slightly shifted image. None if it never was, or descent ran away.
    """
    torch.manual_seed(seed)
    model = minivit.create("vit_32px", **VIT).eval()
    trained = minivit.load(TRAINED).state_dict().items()
    embedding = {name: values for name, values in trained if "patch_embedding" in name}
    model.load_state_dict(embedding, strict=False)
    model = without(model, part)
    image = photographs(1)
    figures: Figures = {"start": psnr(start(image), image), "tenth": {}, "psnr": {}, "met": {}}
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


def by_lbfgs(name: str, part: str = "") -> Figures:
    """Behind the last block, from a first guess, by steps: dB of each image, where contrast is.

    Also the dB of the noise that a search starts from otherwise, and of the guess.
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


def undo(name: str) -> Figures:
    """For each block: for how many photographs the inverse of the branch recovers the tokens."""
    images = photographs(UNDONE).double()
    model: Any = minivit.load(name).double().eval().requires_grad_(False)
    ends = [{end: block[end] for end in ("own", "other")} for block in undone(model, images, True)]
    return {"photographs": UNDONE, "blocks": ends}


ROWS = {
    TRAINED: partial(by_lbfgs, TRAINED),
    **{f"{TRAINED} without {k}": partial(by_lbfgs, TRAINED, k) for k in ("attention", "mlp")},
    "cifar10_mixer": partial(by_lbfgs, "cifar10_mixer"),
    **{f"undo {name}": partial(undo, name) for name in (TRAINED, "cifar10_vit_no_norm")},
    **{
        f"vit {seed}{f' without {part}' * bool(part)}": partial(by_descent, seed, part)
        for seed in SEEDS
        for part in ("", "norm", "attention", "mlp")
    },
}
STUDY = Survey("longer_searches", ROWS, SEEDS, digits="")
