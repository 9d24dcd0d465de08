"""How the loss bends around the weights of a ViT, a ResNet and a hybrid, early and late.

Small models of digits, of about equally many weights, are trained on all digits and on a tenth of
them, in equally many steps. The curvature is measured early, after one pass over all digits, and
late, at the last step, on 126 of the images each was trained on: all of a tenth. The loss is the
one that was trained, cross-entropy with label smoothing of 0.1; images are not augmented, in
training neither. AdamW decays weights by 0.05 times the rate; the loss that is measured has no such
term. BatchNorm is in evaluation mode, with the statistics of the training images at the very
weights, since those gathered on the way lag behind; where a row says ``batch``, it divides by the
statistics of the images measured.

The share of negative curvature early in training is estimated with two probes, the same for every
model; rows called ``probes`` estimate it with sixteen, others for every seed.

Rows called ``relative`` have the largest eigenvalue late in training of steps in units of each
weight's size, which no rescaling of weights that leaves the function as it is can change.

The rows of CIFAR-10 measure the models that come with the package, where training ended.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

import minivit
from minivit.model import Model
from studies.runner.survey import Figures, Survey
from studies.shared import inputs
from studies.shared.digit_models import fraction_of
from studies.shared.figures import over_seeds, plain
from studies.shared.training import accuracy
from vitlab.data import Data, load_data
from vitlab.data.dataset import evenly
from vitlab.instruments.curvature import Maxima, batch_maxima, curvature
from vitlab.instruments.density import Density, density
from vitlab.training import Recipe
from vitlab.training.run import Run

SEEDS = range(5)
VIT = {"depth": 3, "dim": 32, "heads": 2}
HYBRID = {
    "image_size": 8,
    "channels": 1,
    "stages": ("c", "ca", "ca"),
    "widths": (10, 20, 28),
    "heads": (1, 2, 4),
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit_8px", VIT),  # its head reads the mean of all tokens
    "class token": ("vit_8px", VIT | {"pool": "class"}),
    "attention pool": ("vit_8px", VIT | {"pool": "attention"}),
    "resnet": ("resnet_8px", {"width": 9}),
    "hybrid": ("alternet_32px", HYBRID),
}
CIFAR10 = ("cifar10_vit_gap", "cifar10_vit_cls", "cifar10_resnet", "cifar10_alternet")
THROUGH = "through training"
# The rate is the best of three for the ViT and the ResNet of the study `digits`.
EARLY, LATE, IMAGES, PROBES = 20, 200, 126, 16
RECIPE = Recipe(steps=LATE, batch_size=64, learning_rate=3e-3, average=0.0)
SMOOTHED: dict[str, Any] = {"label_smoothing": 0.1}
STEPS = 20  # of Lanczos
STOPS = (0, 5, 10, 20, 50, 100, 200)
# Of the histograms: from 0.001 to 100 on both sides of zero, eight bins to a factor of ten.
EDGES = torch.logspace(-3, 2, 41, dtype=torch.float64)


def measure(name: str) -> Figures:
    if name in CIFAR10:
        return plain(of_cifar10(name), ".4g")
    if name == THROUGH:
        return plain(through_training(), ".4g")
    kind, amount, *figure = name.split(", ")
    if figure:
        measured = {"probes": share, "relative": relative}[figure[0]]
        return plain(over_seeds(measured(kind, amount, seed) for seed in SEEDS), ".4g")
    stages = zip(*(early_and_late(kind, amount, seed) for seed in SEEDS), strict=True)
    early, late = map(over_seeds, stages)
    if "batch" in early:
        early["batch"] = over_seeds(early["batch"])
    return plain({"early": early, "late": late}, ".4g")


def early_and_late(kind: str, amount: str, seed: int) -> Iterator[Figures]:
    data = digits(amount, seed)
    for stop, (model, x, y) in zip(
        (EARLY, LATE), grown(kind, data, seed, EARLY, LATE), strict=True
    ):
        figures = described(spectrum(model, x, y), batch_maxima(model, x, y, steps=10, **SMOOTHED))
        figures["accuracy"] = accuracy(model, *tested(data))
        if stop == LATE:
            of = curvature(model, x, y, k=1, gauss_newton=True, steps=8, **SMOOTHED)
            figures["gauss_newton"] = of.top.item()
        elif has_batch_norm(model):
            figures["batch"] = summary(spectrum(model, x, y, batch_statistics=True))
        yield figures


def digits(amount: str, seed: int) -> Data:
    whole = load_data("DIGITS")
    return whole if amount == "all" else fraction_of(whole, 0.1, seed)


def tested(data: Data) -> tuple[Tensor, Tensor]:
    """Images as models read them, and labels, of the test part."""
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (data.mean, data.std))
    return (data.test.images.float() / 255 - mean) / std, data.test.labels


def share(kind: str, amount: str, seed: int) -> Figures:
    """Of a model early in training, the share of negative curvature and its 95 % interval."""
    ((model, x, y),) = grown(kind, digits(amount, seed), seed, EARLY)
    negative = spectrum(model, x, y, probes=PROBES, seed=1 + seed).negative
    return {"negative": negative.mean, "negative_half": negative.half}


def relative(kind: str, amount: str, seed: int) -> Figures:
    """Of a trained model, the largest eigenvalue with each weight's step in its own units."""
    ((model, x, y),) = grown(kind, digits(amount, seed), seed, LATE)
    largest = curvature(model, x, y, relative=True, k=1, steps=STEPS, **SMOOTHED)
    return {"top": largest.top.item(), "top_error": largest.top_errors.item()}


def grown(kind: str, data: Data, seed: int, *stops: int) -> Iterator[tuple[Model, Tensor, Tensor]]:
    """Trains a model; gives it after some numbers of steps, with training images and classes."""
    name, changes = MODELS[kind]
    torch.manual_seed(seed)
    run = Run(minivit.create(name, **changes), data, replace(RECIPE, seed=seed))
    whole = (data.train.images.float() / 255 - run.mean) / run.std
    chosen = evenly(len(whole), IMAGES)
    for stop in stops:
        while run.step < stop:
            run.advance()
        model = copy.deepcopy(run.model)
        recalibrate(model, whole)
        yield model.eval(), whole[chosen], data.train.labels[chosen]


def has_batch_norm(model: nn.Module) -> bool:
    return any(isinstance(module, nn.BatchNorm2d) for module in model.modules())


def recalibrate(model: nn.Module, images: Tensor) -> None:
    """Sets the running statistics of BatchNorm to those of the images at the present weights."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the mean over batches, of which there is one
    with torch.no_grad():
        model.train()(images)


def spectrum(model: nn.Module, images: Tensor, classes: Tensor, **how: Any) -> Density:
    return density(model, images, classes, **{"probes": 2, "steps": STEPS} | SMOOTHED | how)


def described(seen: Density, batches: Maxima) -> Figures:
    """Figures of the spectrum, and of the largest eigenvalues by mini-batch."""
    return summary(seen) | {
        "maxima_negative": batches.negative,
        "maxima_positive": batches.positive,
        "maxima": batches.values.flatten(),
        "histogram": histogram(seen),
    }


def summary(seen: Density) -> Figures:
    """The outermost eigenvalues, with their errors, and what is negative."""
    top, bottom = seen.points[:, -1].argmax(), seen.points[:, 0].argmin()
    return {
        "negative": seen.negative.mean,
        "negative_half": seen.negative.half,
        "top": seen.points[top, -1],
        "top_error": seen.errors[top, -1],
        "bottom": seen.points[bottom, 0],
        "bottom_error": seen.errors[bottom, 0],
        "below": seen.below(-0.001).mean,
    }


def histogram(seen: Density) -> Tensor:
    """The share of all eigenvalues in each bin of the negative, then of the positive side."""
    shares = seen.shares.double().flatten() / len(seen.points)
    sides = []
    for sign in (-1, 1):
        bins = torch.bucketize(sign * seen.points.double().flatten(), EDGES)
        counts = torch.zeros(len(EDGES) + 1, dtype=torch.float64).index_add(0, bins, shares)
        sides.append(counts[1:-1])
    return torch.stack(sides)


def through_training() -> Figures:
    """Spectra of one ViT and one ResNet, after more and more steps on all digits."""
    found: Figures = {"steps": [float(stop) for stop in STOPS]}
    for kind in ("vit", "resnet"):
        models = grown(kind, load_data("DIGITS"), 0, *STOPS)
        spectra = (spectrum(model, x, y) for model, x, y in models)
        found[kind] = over_seeds(summary(one) | {"histogram": histogram(one)} for one in spectra)
    return found


def of_cifar10(name: str) -> Figures:
    """Figures of a model that comes with the package, on images it was trained on."""
    model = inputs.model(name)
    part = inputs.pictures("CIFAR10", 64, "train")
    images, classes = model.preprocess(part.images), part.labels
    return described(
        spectrum(model, images, classes, probes=1, batch_size=64),
        batch_maxima(model, images[:32], classes[:32], steps=10, batch_size=16, **SMOOTHED),
    )


STUDY = Survey(
    "curvature",
    (
        *(f"{kind}, {n}" for n in ("all", "tenth") for kind in MODELS),
        *(f"{kind}, {n}, probes" for n in ("all", "tenth") for kind in MODELS),
        *(f"{kind}, all, relative" for kind in ("vit", "resnet", "hybrid")),
        THROUGH,
        *CIFAR10,
    ),
    measure,
    seeds=SEEDS,
)
