"""What can be recovered of an image after a block, with parts removed?

An optimiser gets the tokens after a block and a fixed number of steps, in models without one kind
of part: untrained ones in the proportions of ViT-L/16, small ones trained on digits with all their
parts or without one, and the shipped models of CIFAR-10. In untrained ViTs that is gradient
descent; elsewhere L-BFGS, because descent's step is far too short where a norm magnifies the flat
image that it starts from. Rows "by" the other optimiser show what the choice does.

The stored rows of digits without attention or MLP were created without them, and so began with
other weights than a ViT from which they are removed.
"""

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.model import Model
from studies.runner.survey import Figures, Survey
from studies.shared import inputs
from studies.shared.figures import over_seeds
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
SHIPPED = ("cifar10_vit_gap", "cifar10_mixer")


def measure(row: str) -> dict[str, Any]:
    """A row's model without a row's part."""
    name, _, part = row.partition(" without ")
    name, _, optimizer = name.partition(" by ")
    if name in SHIPPED:
        return shipped(name, part)
    if name == "digits":
        return trained_on_digits(part)
    return untrained(name, part, optimizer or ("gd" if name == "vit" else "lbfgs"))


def untrained(name: str, part: str, optimizer: str) -> dict[str, Any]:
    """By depth: dB for every seed, from two images; of the first image, the spectrum.

    Without residuals nothing can be seen after block 4, and it ends there.
    """
    base, changes = UNTRAINED[name]
    steps = 2 * STEPS if optimizer == "gd" else STEPS
    figures: dict[str, Any] = {key: {} for key in ("psnr", "condition", "rank", "largest")}
    images = torch.stack([photograph(name, 16) for name in ("astronaut", "chelsea")])
    images = (images / 255 - 0.5) / 0.25
    figures["start"] = psnr(start(images), images)
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = without(minivit.create(base, **changes).eval(), part)
        last = 4 if "residual" in part else changes["depth"]
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


def trained_on_digits(part: str) -> dict[str, Any]:
    """Trained without a part; or whole, also with each removed. Accuracy, dB at the last block.

    ``"first"`` has the dB at the first block, ``"before"`` that at the last before training.
    """
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


def shipped(name: str, part: str) -> dict[str, Any]:
    """By depth: dB of each of four test images. At the end: where contrast was recovered.

    ``"start"`` has the dB of the noise that each search starts from.
    """
    model: Any = inputs.model(name)
    images = model.preprocess(inputs.pictures("CIFAR10", 4).images)
    lesser = without(model, part)
    psnrs = {}
    for depth in (1, len(model.blocks)):
        guesses = recovered(lesser, images, depth, "lbfgs", STEPS // 2)
        psnrs[str(depth)] = psnr_of_each(guesses, images)
    return {
        "psnr": psnrs,
        "start": psnr_of_each(start(images), images),
        "highlight": highlight(model, images, guesses),
    }


NAMES = [
    "vit",
    "vit by lbfgs",
    *(f"vit without {part}" for part in (*PARTS, "residual attention")),
    "mixer",
    "mixer by gd",
    "mixer without norm",
    "feedforward",
    "feedforward without norm",
    "mixer, more features",
    "mixer, fine patches",
    "mixer, fine patches, as many features",
    "digits",
    *(f"digits without {part}" for part in PARTS),
    "cifar10_vit_gap",
    "cifar10_vit_gap without attention",
    "cifar10_vit_gap without mlp",
    "cifar10_mixer",
]
STUDY = Survey("ablations", NAMES, measure, seeds=SEEDS)
