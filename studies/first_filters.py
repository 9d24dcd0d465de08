"""What does training do to the first filters and the positions of small models?

They tell from which of ten photographs a grey crop was cut; in float64 on one thread, so that what
is found over seeds does not hang on rounding. ViTs ``begun short`` have filters scaled to the
ResNets' first norm. Small ViTs for digits, shifted at random, learn a table of positions.
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
from studies.runner.survey import Figures, Survey, over_seeds
from studies.shared.training import accuracy, fit
from vitlab import instruments
from vitlab.data import load_data
from vitlab.data.photographs import PHOTOGRAPHS, crops

SEEDS, STEPS = range(16), 200
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


@cache
def pair(kind: str, seed: int) -> tuple[Model, Model]:
    before = untrained(kind, seed)
    model = copy.deepcopy(before)
    train(model, *grey_crops(3000, seed=0), seed)
    return before.eval(), model.eval()


def untrained(kind: str, seed: int) -> Model:
    """A model before training; where it is begun short, with filters as long as the ResNet's."""
    torch.manual_seed(seed)
    name, changes = KINDS[kind.removesuffix(", begun short")]
    model = minivit.create(name, **changes).double()
    if kind in (SHORT, WIDE_SHORT):
        factor = length(untrained("ResNet", seed)) / length(model)
        dict(model.named_parameters())["patch_embedding.projection.weight"].data *= factor
    return model


def train(model: Model, images: Tensor, labels: Tensor, seed: int, shift: float = 0.0) -> None:
    """Trains a model in place, as the chapter does."""
    how: dict[str, Any] = {"warm_up": 0.2, "clip": torch.inf, "fused": True}
    fit(model, images, labels, steps=STEPS, seed=seed, rate=1e-2, shift=shift, **how)


def length(model: Model) -> float:
    return instruments.first_filters(model).flatten(1).norm(dim=1).mean().item()


def of_kind(kind: str) -> Figures:
    """What training did to the models of one kind, by seed."""
    rows = []
    for before, after in (pair(kind, seed) for seed in SEEDS):
        recovery = gabor_and_recovery(before, after) if kind == "ResNet" else {}
        rows.append(changed(before, after) | recovery)
    return over_seeds(rows)


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


def places(number: int) -> Figures:
    """Of small ViTs for so many digits, shifted: R² of row and column from the positions."""
    digits = load_data("DIGITS").train
    images = (digits.images.double() / 255 - 0.3) / 0.35
    rows = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = minivit.create("vit_8px", depth=1, dim=32).double()
        train(model, images[:number], digits.labels[:number], seed, shift=0.25)
        row, column = instruments.place_recovery(instruments.position_table(model))
        rows.append({"row": row, "column": column})
    return over_seeds(rows)


def overlaps() -> Figures:
    """How much of the leading components lies in those of the ResNets of the other seeds."""
    spans = {kind: [leading(pair(kind, seed)[1]) for seed in SEEDS] for kind in (*KINDS, SHORT)}

    def overlap(span: Tensor, seed: int) -> float:
        others = (other for i, other in enumerate(spans["ResNet"]) if i != seed)
        return fmean(instruments.subspace_overlap(span, other).item() for other in others)

    return {
        kind: [overlap(span, seed) for seed, span in enumerate(leaders)]
        for kind, leaders in spans.items()
    }


def leading(model: Model) -> Tensor:
    """The leading principal components of the first filters: ``[K, 1, 7, 7]``."""
    return instruments.principal_components(instruments.first_filters(model)).pictures[:K]


ROWS: dict[str, Callable[[], Figures]] = {
    **{kind: partial(of_kind, kind) for kind in (*KINDS, SHORT, WIDE_SHORT)},
    "overlaps": overlaps,
    "places from 1,259 digits": partial(places, 1259),
    "places from 100 digits": partial(places, 100),
}
STUDY = Survey("first_filters", ROWS, SEEDS, digits="")
