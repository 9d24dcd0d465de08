"""What does training do to the first filters and the positions of small models?

They tell from which of ten photographs a grey crop was cut; in float64 on one thread, so that what
is found over seeds does not hang on rounding. ViTs ``begun short`` have filters scaled to the
ResNets' first norm. Small ViTs for digits, shifted at random, learn a table of positions. ``1 x``,
``3 x`` and ``10 x``: as many steps, at the best of bracketed rates; the others at one rate.
"""

import copy
import math
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import minivit
from minivit.model import Model
from studies.runner.survey import Figures, Survey, plain
from studies.shared.lengths import FIRST, TIMES, after, at_rate
from studies.shared.training import accuracy, fit, outputs
from vitlab import instruments
from vitlab.data import load_data
from vitlab.data.photographs import PHOTOGRAPHS, crops
from vitlab.training.augment import shift_and_flip

SEEDS, STEPS = range(16), 200
PARTS = 20  # of a training on whose way something is measured
VIT = {"image_size": 28, "patch_size": 7, "channels": 1, "depth": 1}
RESNET = {"image_size": 28, "channels": 1, "stem": "7x7", "stages": (1,), "width": 16}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "narrow ViT": ("vit_32px", VIT | {"dim": 12, "heads": 3}),
    "wide ViT": ("vit_32px", VIT | {"dim": 64, "heads": 4}),
    "ResNet": ("resnet_32px", RESNET),
}
SHORT, WIDE_SHORT = "narrow ViT, begun short", "wide ViT, begun short"
K = 6  # components


@cache
def grey_crops(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Crops of photographs, ``[n, 1, 28, 28]``, and of which, ``[n]``."""
    names = tuple(PHOTOGRAPHS)
    pictures, of = crops(n, 28, seed=seed, names=names)
    grey = pictures.double().mean(1, keepdim=True) / 255
    return (grey - 0.45) / 0.25, torch.tensor([names.index(name) for name in of])


def untrained(kind: str, seed: int) -> Model:
    """A model before training; where it is begun short, with filters as long as the ResNet's."""
    torch.manual_seed(seed)
    name, changes = KINDS[kind.removesuffix(", begun short")]
    model = minivit.create(name, **changes).double()
    if kind in (SHORT, WIDE_SHORT):
        factor = length(untrained("ResNet", seed)) / length(model)
        dict(model.named_parameters())["patch_embedding.projection.weight"].data *= factor
    return model


def length(model: Model) -> float:
    return instruments.first_filters(model).flatten(1).norm(dim=1).mean().item()


def patterned(model: Model) -> float:
    """The fraction of first filters that have a pattern."""
    found = instruments.filter_spectra(instruments.first_filters(model))
    return found.structured().double().mean().item()


@torch.no_grad()
def changed(before: Model, after: Model) -> Figures:
    """What training did to the first filters of one model; lengths and turns are means."""
    filters = [instruments.first_filters(model) for model in (before, after)]
    had, has = (instruments.filter_spectra(x).structured() for x in filters)
    old, new = (x.flatten(1) for x in filters)
    cosine = F.cosine_similarity(old, new)
    grown = new.norm(dim=1) / old.norm(dim=1)
    both = 0 < has.sum() < len(has)
    return {
        "right": accuracy(after, *grey_crops(500, seed=1)),
        "pattern_before": had.double().mean().item(),
        "pattern": has.double().mean().item(),
        "cosine": cosine.mean().item(),
        "moved": (new - old).norm(dim=1).mean().item(),
        "length_before": length(before),
        # filters with a pattern less those without, where there are both
        "cosine_apart": (cosine[has].mean() - cosine[~has].mean()).item() if both else None,
        "grown_without": grown[~has].mean().item() if both else None,
    }


@torch.no_grad()
def gabor_and_recovery(before: Model, after: Model) -> Figures:
    """How well Gabor functions fit the first filters, and how well their input is recovered.

    The latter in dB, over 16 crops, by 100 steps of gradient descent from zeros with the step
    1 / (largest singular value)².
    """
    images = grey_crops(500, seed=1)[0][:16].flatten(1)
    figures: Figures = {}
    for when, model in (("_before", before), ("", after)):
        kernel = instruments.first_filters(model)
        inside = torch.einsum("np,gpt->ngt", kernel.flatten(1), gabor_planes())
        fit = inside.square().sum(-1).amax(1) / kernel.flatten(1).square().sum(1)
        figures[f"gabor{when}"] = fit.mean().item()
        one_pixel = torch.eye(784).double().view(784, 1, 28, 28)
        matrix = F.conv2d(one_pixel, kernel, stride=2, padding=3).flatten(1).T
        values, vectors = torch.linalg.eigh(matrix.T @ matrix)  # squared singular values
        along = images @ vectors
        left = along * (1 - values / values[-1]) ** 100
        ratio = along.square().sum() / left.square().sum()
        figures[f"recovered{when}"] = 10 * ratio.log10().item()
    return figures


@cache
def gabor_planes(side: int = 7) -> Tensor:
    """Orthonormal pairs of Gabor functions of two phases: ``[planes, side², 2]``."""
    at = torch.arange(side) - (side - 1) / 2
    y, x = torch.meshgrid(at, at, indexing="ij")
    angles, centres = torch.arange(8) * math.pi / 8, range(-2, 3)
    sigmas, frequencies = (1.0, 1.5, 2.5), (1 / 8, 3 / 16, 1 / 4, 3 / 8)
    planes = []
    for angle, down, right, sigma, f in product(angles, centres, centres, sigmas, frequencies):
        turn = 2 * math.pi * f * (x * angle.cos() + y * angle.sin())
        bell = torch.exp(-((y - down) ** 2 + (x - right) ** 2) / 2 / sigma**2)
        planes.append(torch.stack([bell * turn.cos(), bell * turn.sin()]))
    return torch.linalg.qr(torch.stack(planes).flatten(2).mT.double()).Q


def leading(model: Model) -> Tensor:
    """The leading principal components of the first filters: ``[K, 1, 7, 7]``."""
    return instruments.principal_components(instruments.first_filters(model)).pictures[:K]


def followed(
    model: Model,
    images: tuple[Tensor, Tensor],
    held_out: tuple[Tensor, Tensor],
    measure: Callable[[Model], float],
    steps: int,
    **how: Any,
) -> Figures:
    """Trains a model in place; how well it ends, and of the longest what it was on the way."""
    losses: list[float] = []
    curve: list[list[float]] = []
    each, longest = steps // PARTS, steps == TIMES[-1] * STEPS

    def watch(loss: Tensor) -> None:
        if not loss.isfinite():
            raise FloatingPointError(f"the loss is {loss} after {len(losses)} steps")
        losses.append(loss.item())
        if longest and len(losses) % each == 0:
            curve.append([len(losses), fmean(losses[-each:]), measure(model)])

    how |= {"warm_up": 0.2, "clip": torch.inf, "fused": True}
    fit(model, *images, steps=steps, watch=watch, **how)
    logits = outputs(model, held_out[0])
    return {
        "validation": (logits.argmax(1) == held_out[1]).double().mean(),
        "likelihood": -F.cross_entropy(logits, held_out[1]),
        "train_loss": fmean(losses[-each:]),
    } | ({"curve": curve} if longest else {})


def trained(kind: str, times: int, rate: float, seed: int) -> Figures:
    """How well a model of one kind ends, what changed in its filters, and their components."""
    model = untrained(kind, seed)
    before = copy.deepcopy(model).eval()
    parts = grey_crops(3000, seed=0), grey_crops(500, seed=2)
    figures = followed(model, *parts, patterned, times * STEPS, rate=rate, seed=seed)
    recovery = gabor_and_recovery(before, model) if kind == "ResNet" else {}
    return plain(figures | changed(before, model) | recovery | {"leading": leading(model)}, "")


def of_kind(kind: str, times: int, rate: float = 0.0) -> Figures:
    """What training did to models of one kind, by seed; ``overlap`` is with ResNets' components."""

    def found(name: str) -> Figures:
        training = partial(trained, name, times)
        if rate:
            return at_rate(training, SEEDS, rate, f"first_filters {name}, {times} x")
        return after(times, training, SEEDS, "first_filters", name)

    row, resnets = found(kind), found("ResNet")
    for one, others in zip((row, row.get("next")), (resnets, resnets.get("next")), strict=True):
        if one and others:
            one["overlap"] = overlap(torch.tensor(one["leading"]), torch.tensor(others["leading"]))
            del one["leading"]
    return row | {"steps": times * STEPS}


def overlap(spans: Tensor, others: Tensor) -> list[float]:
    """How much of leading components, ``[seeds, K, 1, 7, 7]``, lies in those of other seeds."""
    return [
        fmean(instruments.subspace_overlap(a, b).item() for j, b in enumerate(others) if j != i)
        for i, a in enumerate(spans)
    ]


def places(row: str, times: int) -> Figures:
    """Of small ViTs for so many digits, shifted: R² of rows and columns from the positions."""
    training = partial(placed, NUMBERS[row], times)
    return after(times, training, SEEDS, "first_filters", row) | {"steps": times * STEPS}


def placed(number: int, times: int, rate: float, seed: int) -> Figures:
    digits = load_data("DIGITS")
    seen, new = ((x.images.double() / 255 - 0.3) / 0.35 for x in (digits.train, digits.validation))
    moved = shift_and_flip(new, 0.25, False, torch.Generator().manual_seed(0))
    of = (seen[:number], digits.train.labels[:number]), (moved, digits.validation.labels)
    torch.manual_seed(seed)
    model = minivit.create("vit_8px", depth=1, dim=32).double()
    figures = followed(model, *of, place, times * STEPS, rate=rate, seed=seed, shift=0.25)
    return plain(figures | {"place": place(model)}, "")


def place(model: Model) -> float:
    """R² of row and column, their mean, from a table of positions."""
    return fmean(instruments.place_recovery(instruments.position_table(model)))


ROWS = {kind: partial(of_kind, kind, 1, FIRST) for kind in (*KINDS, SHORT, WIDE_SHORT)}
ROWS |= {f"{kind}, {n} x": partial(of_kind, kind, n) for kind in (*KINDS, SHORT) for n in TIMES}
NUMBERS = {f"places from {n:,} digits": n for n in (1259, 100)}
ROWS |= {f"{row}, {n} x": partial(places, row, n) for row in NUMBERS for n in TIMES}
STUDY = Survey("first_filters", ROWS, SEEDS, digits="")
