"""What can be recovered of an image after a block, with parts removed?

An optimiser gets the tokens after a block and a fixed number of steps. In untrained ViTs that is
gradient descent; elsewhere L-BFGS, because descent's step is far too short where a norm magnifies
the flat image that it starts from.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.model import Model
from studies.runner.survey import Figures, Survey, over_seeds
from studies.shared import inputs
from studies.shared.recovery import highlight, psnr, psnr_of_each, recovered, start, without
from studies.shared.training import accuracy
from vitlab.calls import activation
from vitlab.data import load_data
from vitlab.data.photographs import photograph
from vitlab.instruments.spectra import Spectrum, spectrum
from vitlab.training import Recipe, train

SEEDS = range(5)
# 48 numbers of a patch to 64 features: the ratio of 768 to 1024 in ViT-L/16, and its 24 blocks.
SMALL: dict[str, Any] = {"image_size": 16, "patch_size": 4, "dim": 64}
VIT = SMALL | {"depth": 24, "heads": 4, "mlp_ratio": 4}
MIXER = SMALL | {"depth": 12, "mixing_hidden": 32}
FINE = MIXER | {"patch_size": 2, "depth": 4, "mixing_hidden": 128}
UNTRAINED: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit_32px", VIT),
    "mixer": ("mixer_32px", MIXER),
    "feedforward": ("feedforward_32px", MIXER | {"mixing_hidden": 4 * 17}),
    "mixer, more features": ("mixer_32px", MIXER | {"depth": 4, "dim": 256}),
    "mixer, fine patches": ("mixer_32px", FINE),
    "mixer, fine patches, as many features": ("mixer_32px", FINE | {"dim": 16}),
}
DEPTHS = (1, 4, 12, 24)
# 16 numbers of a patch to 24 features
DIGITS: dict[str, Any] = {"image_size": 16, "patch_size": 4, "dim": 24, "heads": 3, "depth": 4}
PARTS = ("attention", "mlp", "norm", "residual")
RECIPE = Recipe(steps=300, batch_size=64, learning_rate=3e-3)
STEPS = 50  # of L-BFGS, half as many in shipped models; of descent twice as many


def untrained(name: str, part: str = "", optimizer: str = "lbfgs") -> Figures:
    """By depth: dB for every seed, from two images; of the first image, the spectrum."""
    base, changes = UNTRAINED[name]
    steps = 2 * STEPS if optimizer == "gd" else STEPS
    figures: Figures = {key: {} for key in ("psnr", "condition", "rank", "largest")}
    images = torch.stack([photograph(name, 16) for name in ("astronaut", "chelsea")])
    images = (images / 255 - 0.5) / 0.25
    figures["start"] = psnr(start(images), images)
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = without(minivit.create(base, **changes).eval(), part)
        last = 4 if "residual" in part else changes["depth"]  # nothing is seen after it
        for depth in (d for d in DEPTHS if d <= last):
            near = psnr(recovered(model, images, depth, optimizer, steps), images)
            figures["psnr"].setdefault(str(depth), []).append(near)
            if seed == 0:
                behind = spectrum_behind(model, images, depth)
                figures["condition"][str(depth)] = rounded(behind.condition)
                figures["largest"][str(depth)] = rounded(behind.values[:, 0])
                figures["rank"][str(depth)] = behind.rank().item()
    return figures


def spectrum_behind(model: Model, images: Tensor, depth: int) -> Spectrum:
    """Singular values of the Jacobian from the first image to a block, in float64."""
    function = activation(copy.deepcopy(model).double(), f"blocks.{depth - 1}")
    return spectrum(function, images[:1].double())


def rounded(x: Tensor) -> float:
    """Three digits of the one number there is."""
    return float(f"{x.item():.3g}")


def trained_on_digits(part: str = "") -> Figures:
    """Accuracy without a part, or whole and without each; dB at both ends, and before training."""
    data = load_data("DIGITS", size=16)
    x = (data.test.images.float() / 255 - data.mean[0]) / data.std[0]
    last = DIGITS["depth"]

    def near(model: Model, depth: int) -> float:
        return psnr(recovered(model, x[:2], depth, "lbfgs", STEPS), x[:2])

    rows: dict[str, list[Figures]] = {removed: [] for removed in (("",) if part else ("", *PARTS))}
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = without(minivit.create("vit_8px", **DIGITS), part)
        before = copy.deepcopy(model).eval()
        train(model, data, replace(RECIPE, seed=seed))
        for removed in rows:
            after = without(model, removed)
            rows[removed].append({
                "accuracy": round(accuracy(after, x, data.test.labels), 4),
                "psnr": near(after, last),
                "first": near(after, 1),
                "before": near(without(before, removed), last),
                "condition": rounded(spectrum_behind(after, x, last).condition),
            })  # fmt: skip
    return {removed: over_seeds(figures) for removed, figures in rows.items()}


def shipped(name: str, part: str = "") -> Figures:
    """By depth: dB of four test images; of the noise at the start; where contrast was recovered."""
    model: Any = minivit.load(name)
    images = model.preprocess(inputs.pictures("CIFAR10", 4).images)
    lesser = without(model, part)
    psnrs = {}
    for depth in (1, len(model.blocks)):
        guesses = recovered(lesser, images, depth, "lbfgs", STEPS // 2)
        psnrs[str(depth)] = psnr_of_each(guesses, images)
    noise, contrast = psnr_of_each(start(images), images), highlight(model, images, guesses)
    return {"psnr": psnrs, "start": noise, "highlight": contrast}


ROWS: dict[str, Callable[[], Figures]] = {
    "vit": partial(untrained, "vit", optimizer="gd"),
    "vit by lbfgs": partial(untrained, "vit"),
    **{
        f"vit without {part}": partial(untrained, "vit", part, "gd")
        for part in (*PARTS, "residual attention")
    },
    "mixer": partial(untrained, "mixer"),
    "mixer by gd": partial(untrained, "mixer", optimizer="gd"),
    "mixer without norm": partial(untrained, "mixer", "norm"),
    "feedforward": partial(untrained, "feedforward"),
    "feedforward without norm": partial(untrained, "feedforward", "norm"),
    **{name: partial(untrained, name) for name in UNTRAINED if "," in name},
    "digits": trained_on_digits,
    **{f"digits without {part}": partial(trained_on_digits, part) for part in PARTS},
    "cifar10_vit_gap": partial(shipped, "cifar10_vit_gap"),
    "cifar10_vit_gap without attention": partial(shipped, "cifar10_vit_gap", "attention"),
    "cifar10_vit_gap without mlp": partial(shipped, "cifar10_vit_gap", "mlp"),
    "cifar10_mixer": partial(shipped, "cifar10_mixer"),
}
STUDY = Survey("ablations", ROWS, SEEDS, digits="")
