"""What the blocks hand on with parts taken out. ``python -m studies.ablations --help``

Gradient descent on the pixels gets the tokens behind a block and a fixed number of steps, in
models without one kind of part: untrained ones in the proportions of ViT-L/16, small ones trained
on digits with all their parts or without one, and the shipped models of CIFAR-10.
"""

import copy
import sys
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.analysis.spectra import spectrum
from minivit.inversion import Diverged, invert
from minivit.inversion.result import decibels
from minivit.mixer import Mixer
from minivit.patches import patchify
from minivit.recording import activation
from minivit.training import Recipe, load_data, train
from minivit.training.photographs import photograph
from minivit.vit import ViT
from studies.survey import NotHere, Survey, main

SEEDS = range(5)
STEPS = 100  # of gradient descent
# 48 numbers of a patch to 64 features: the ratio of 768 to 1024 in ViT-L/16, and its 24 blocks.
SMALL: dict[str, Any] = {"image_size": 16, "patch_size": 4, "dim": 64}
VIT = SMALL | {"depth": 24, "heads": 4, "mlp_ratio": 4}
MIXER = SMALL | {"depth": 12, "mixing_hidden": 32}
FINE = {"patch_size": 2, "depth": 4, "mixing_hidden": 128}
UNTRAINED: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit_32px", VIT),
    "mixer": ("mixer_32px", MIXER),
    "feedforward": ("feedforward_32px", MIXER | {"mixing_hidden": 4 * 17}),
    "mixer, fine patches": ("mixer_32px", MIXER | FINE),
    "mixer, fine patches, as many features": ("mixer_32px", MIXER | FINE | {"dim": 16}),
}
DEPTHS = (1, 4, 12, 24)
DIGITS = {"image_size": 16, "patch_size": 4, "dim": 24, "heads": 3}  # 16 numbers to 24 features
LAST = 4  # block of the digits models
PARTS = ("attention", "mlp", "norm", "residual")
CONFIGURED = {"attention": False, "mlp": False, "norm": "none", "residual": False}
RECIPE = Recipe(steps=150, batch_size=64, learning_rate=3e-3)
SHIPPED = ("cifar10_vit_gap", "cifar10_mixer")


def without(model: ViT | Mixer, part: str) -> ViT | Mixer:
    """A copy without a part; ``"residual attention"`` names two."""
    for one in part.split():
        model = minivit.remove(model, one)  # type: ignore[assignment]
    return model


def recovered(model: ViT | Mixer, images: Tensor, depth: int, steps: int = STEPS) -> Tensor:
    """Pictures found from the tokens after some blocks; the start, where descent ran away."""
    try:
        return invert(model, images, at=f"blocks.{depth - 1}", optimizer="gd", steps=steps).image
    except Diverged:
        return start(images)


def start(images: Tensor) -> Tensor:
    """Where every inversion starts."""
    model = torch.nn.Identity().eval()
    return invert(model, images, optimizer="gd", steps=1, step_size=1e-12).image


def psnr(found: Tensor, images: Tensor) -> float:
    """The mean over pictures, in dB."""
    return round(decibels((found - images).flatten(1).norm(dim=1), images).mean().item(), 2)


def measure(row: str, rehearsal: bool) -> dict[str, Any]:
    """PSNR by depth for every seed, and what else a kind of model has to show."""
    name, _, part = row.partition(" without ")
    steps = 2 if rehearsal else STEPS
    if name in SHIPPED:
        return shipped(name, part, steps // 3)
    if name == "digits":
        recipe = replace(RECIPE, steps=2) if rehearsal else RECIPE
        return trained_on_digits(part, SEEDS[: 1 if rehearsal else None], recipe, steps // 2)
    return untrained(name, part, steps, DEPTHS[:1] if rehearsal else DEPTHS)


def untrained(name: str, part: str, steps: int, depths: tuple[int, ...]) -> dict[str, Any]:
    """By depth: dB for every seed, from two pictures; of the first picture, the spectrum."""
    model_name, changes = UNTRAINED[name]
    found: dict[str, Any] = {key: {} for key in ("psnr", "condition", "rank", "largest")}
    images = torch.stack([photograph(one, 16) for one in ("astronaut", "chelsea")])
    images = (images / 255 - 0.5) / 0.25
    found["start"] = psnr(start(images), images)
    for seed in SEEDS:
        torch.manual_seed(seed)
        model: Any = without(minivit.create(model_name, **changes).eval(), part)  # type: ignore
        for depth in (d for d in depths if d <= (4 if "residual" in part else len(model.blocks))):
            near = psnr(recovered(model, images, depth, steps), images)
            found["psnr"].setdefault(str(depth), []).append(near)
            if seed == 0:
                function = activation(copy.deepcopy(model).double(), f"blocks.{depth - 1}")
                one = spectrum(function, images[:1].double())
                found["condition"][str(depth)] = rounded(one.condition)
                found["largest"][str(depth)] = rounded(one.values[:, 0])
                found["rank"][str(depth)] = one.rank().item()
    return found


def rounded(x: Tensor) -> float:
    """Three digits of the one number there is."""
    return float(f"{x.item():.3g}")


def trained_on_digits(part: str, seeds: Any, recipe: Recipe, steps: int) -> dict[str, Any]:
    """Trained without a part, or whole and the parts removed: accuracy, dB at the last block.

    ``"first"`` has the dB at the first block, ``"before"`` that at the last before training.
    """
    data = load_data("DIGITS", size=16)
    changes = DIGITS | ({part: CONFIGURED[part]} if part else {})
    keys = "accuracy", "psnr", "first", "before", "condition"
    removals = ("", *PARTS) if not part else ("",)
    found: dict[str, Any] = {kind: {key: [] for key in keys} for kind in removals}
    x = (data.test.images.float() / 255 - data.mean[0]) / data.std[0]

    def near(model: ViT | Mixer, depth: int) -> float:
        return psnr(recovered(model, x[:2], depth, steps), x[:2])

    for seed in seeds:
        torch.manual_seed(seed)
        model: Any = minivit.create("vit_8px", **changes)
        before = copy.deepcopy(model).eval()
        train(model, data, replace(recipe, seed=seed))
        for kind, figures in found.items():
            whole = without(model, kind)
            with torch.no_grad():
                right = (whole(x).argmax(1) == data.test.labels).double().mean().item()
            function = activation(copy.deepcopy(whole).double(), f"blocks.{LAST - 1}")
            figures["accuracy"].append(round(right, 4))
            figures["condition"].append(rounded(spectrum(function, x[:1].double()).condition))
            figures["psnr"].append(near(whole, LAST))
            if kind in ("", "mlp"):
                figures["first"].append(near(whole, 1))
                figures["before"].append(near(without(before, kind), LAST))
    return found


def shipped(name: str, part: str, steps: int) -> dict[str, Any]:
    """By depth: dB on four test pictures. At the end: where what was recovered has contrast."""
    try:
        model: Any = minivit.load(name).eval()
        data = load_data("CIFAR10")
    except (FileNotFoundError, ValueError) as error:
        raise NotHere(str(error)) from error
    images = model.preprocess(data.test.images[:4])
    lesser, found = without(model, part), dict[str, Any](psnr={})
    for depth in (1, 6):
        pictures = recovered(lesser, images, depth, steps)
        found["psnr"][str(depth)] = psnr(pictures, images)
    found["highlight"] = highlight(model, images, pictures)
    return found


def highlight(model: ViT, images: Tensor, pictures: Tensor) -> list[float]:
    """Whether contrast is raised in the patches that decide: a correlation for every picture.

    That of the logarithms of two numbers for each patch: its contrast in the recovered picture,
    relative to that in the picture; and the size of the derivative of the largest logit by it.
    """
    x = images.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).amax(1).sum(), x)

    def contrast(images: Tensor) -> Tensor:  # [n, patches]
        patches = patchify(images, model.config.patch_size).unflatten(-1, (images.shape[1], -1))
        return patches.std(-1, correction=0).square().mean(-1).sqrt()

    least = 0.02  # a flat patch has no contrast to raise
    raised = ((contrast(pictures) + least) / (contrast(images) + least)).log()
    saliency = patchify(slope, model.config.patch_size).norm(dim=-1).log()
    both = torch.stack([raised, saliency], 1)  # [n, 2, patches]
    return [round(torch.corrcoef(one)[0, 1].item(), 3) for one in both]


NAMES = [
    "vit",
    *(f"vit without {part}" for part in (*PARTS, "residual attention")),
    "mixer",
    "mixer without norm",
    "feedforward",
    "feedforward without norm",
    "mixer, fine patches",
    "mixer, fine patches, as many features",
    "cifar10_vit_gap",
    *(f"cifar10_vit_gap without {part}" for part in PARTS[:2]),
    "cifar10_mixer",
    "digits",
    *(f"digits without {part}" for part in PARTS),
]
SURVEY = Survey("ablations", NAMES, measure, seeds=SEEDS)

if __name__ == "__main__":
    sys.exit(main(SURVEY))
