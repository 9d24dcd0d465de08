"""How the loss bends around the weights of a ViT, a ResNet and a hybrid, early and late.

Small models of about equally many weights; the loss without the decay of weights, on 126 of the
images each was trained on. BatchNorm has the statistics of the training images; where a row says
``batch``, those of the images measured. ``probes`` rows and those of other ``steps`` or another
``rate`` have sixteen probes, others two; in ``relative`` rows steps are in units of each weight's
size; ``3 x``: as many steps, at bracketed rates.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

import minivit
from minivit.model import Model
from studies.runner.survey import Figures, Survey, over_seeds
from studies.shared import inputs
from studies.shared.digit_models import fraction_of
from studies.shared.lengths import TIMES, at_best_rate
from studies.shared.training import accuracy, normalised, outputs
from vitlab.data import Data, load_data
from vitlab.data.dataset import evenly
from vitlab.instruments.curvature import Maxima, batch_maxima, curvature
from vitlab.instruments.spectra import Density, density
from vitlab.training import Recipe
from vitlab.training.run import Run

SEEDS = range(5)
VIT = {"depth": 3, "dim": 32, "heads": 2}
HYBRID = {"image_size": 8, "channels": 1, "stages": ("c", "ca", "ca")}
HYBRID |= {"widths": (10, 20, 28), "heads": (1, 2, 4)}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit_8px", VIT),  # its head reads the mean of all tokens
    "class token": ("vit_8px", VIT | {"pool": "class"}),
    "attention pool": ("vit_8px", VIT | {"pool": "attention"}),
    "resnet": ("resnet_8px", {"width": 9}),
    "hybrid": ("alternet_32px", HYBRID),
}
CIFAR10 = ("cifar10_vit_gap", "cifar10_vit_cls", "cifar10_resnet", "cifar10_alternet")
# The rate is the best of three for the ViT and the ResNet of the study `digits`.
EARLY, LATE, IMAGES, PROBES = 20, 200, 126, 16
ENDS = {"40 steps": (40, 3e-3)} | {f"rate {rate}": (EARLY, rate) for rate in (1e-3, 1e-2)}
RECIPE = Recipe(steps=LATE, batch_size=64, learning_rate=3e-3, average=0.0)
SMOOTHED: dict[str, Any] = {"label_smoothing": 0.1}
STEPS = 20  # of Lanczos
EPOCH = 20  # steps
LEVELS = (1.0, 0.5, 0.2, 0.1, 0.05)  # of the training loss
STOPS = (0, 5, 10, 20, 50, 100, 200)
# Of the histograms: from 0.001 to 100 on both sides of zero, eight bins to a factor of ten.
EDGES = torch.logspace(-3, 2, 41, dtype=torch.float64)


def early_and_late(kind: str, amount: str) -> Figures:
    """What is measured early in training, and late."""
    rows: list[list[Figures]] = []
    for seed in SEEDS:
        data = digits(amount, seed)
        test = normalised(data.test.images.float() / 255, data), data.test.labels
        stages: list[Figures] = []
        for model, x, y in grown(kind, data, seed, EARLY, LATE):
            maxima = batch_maxima(model, x, y, steps=10, **SMOOTHED)
            figures = described(spectrum(model, x, y), maxima)
            figures["accuracy"] = accuracy(model, *test)
            if stages:
                of = curvature(model, x, y, k=1, gauss_newton=True, steps=8, **SMOOTHED)
                figures["gauss_newton"] = of.top.item()
            elif any(isinstance(module, nn.BatchNorm2d) for module in model.modules()):
                figures["batch"] = summary(spectrum(model, x, y, batch_statistics=True))
            stages.append(figures)
        rows.append(stages)
    early, late = map(over_seeds, zip(*rows, strict=True))
    if "batch" in early:
        early["batch"] = over_seeds(early["batch"])
    return {"early": early, "late": late}


def digits(amount: str, seed: int) -> Data:
    whole = load_data("DIGITS")
    return whole if amount == "all" else fraction_of(whole, 0.1, seed)


def by_seed(
    measure: Callable[..., Figures], kind: str, amount: str, stop: int, rate: float = 3e-3
) -> Figures:
    """Figures of a model after some steps, by its training images and the seed."""
    rows, recipe = [], replace(RECIPE, learning_rate=rate)
    for seed in SEEDS:
        ((model, x, y),) = grown(kind, digits(amount, seed), seed, stop, recipe=recipe)
        rows.append(measure(model, x, y, seed))
    return over_seeds(rows)


def at_other_ends(model: Model, x: Tensor, y: Tensor, seed: int) -> Figures:
    """What is compared early in training."""
    return summary(spectrum(model, x, y)) | share(model, x, y, seed)


def share(model: Model, x: Tensor, y: Tensor, seed: int) -> Figures:
    """Of a model early in training, the share of negative curvature and its 95 % interval."""
    negative = spectrum(model, x, y, probes=PROBES, seed=1 + seed).negative
    return {"negative": negative.mean, "negative_half": negative.half}


def relative(model: Model, x: Tensor, y: Tensor, seed: int) -> Figures:
    """Of a trained model, the largest eigenvalue with each weight's step in its own units."""
    largest = curvature(model, x, y, relative=True, k=1, steps=STEPS, **SMOOTHED)
    return {"top": largest.top.item(), "top_error": largest.top_errors.item()}


def longer(kind: str, times: int) -> Figures:
    """Figures after ``times`` as many steps on all digits, at the best rate and at the next."""
    name = f"curvature {kind}, {times} x"
    figures = at_best_rate(partial(sharpness, kind, times), SEEDS, 3e-3, name)
    return with_curve(figures) | {"steps": times * LATE}


def with_curve(figures: Figures) -> Figures:
    """Figures whose eigenvalues ``at`` levels stand in a ``curve``: epochs none, loss, value."""
    passed = [
        [[None, *pair] for pair in zip(LEVELS, at, strict=True) if pair[1]] for at in figures["at"]
    ]
    ends = zip(passed, figures["train_loss"], figures["top"], strict=True)
    curve = [[*before, [None, loss, top]] for before, loss, top in ends]
    return {key: value for key, value in figures.items() if key != "at"} | {"curve": curve}


def sharpness(kind: str, times: int, rate: float, seed: int) -> Figures:
    """Of a model the largest eigenvalue at the end, and after the first epochs at which the loss on
    all training images, without label smoothing, was not above ``LEVELS``; scores."""
    data = load_data("DIGITS")
    recipe = replace(RECIPE, steps=times * LATE, learning_rate=rate)
    train, held_out, test = (
        (normalised(part.images.float() / 255, data), part.labels)
        for part in (data.train, data.validation, data.test)
    )
    ends = [*range(EPOCH, times * LATE, EPOCH), times * LATE]
    at: list[float | None] = [None] * len(LEVELS)
    for model, x, y in grown(kind, data, seed, *ends, recipe=recipe):
        loss = cross_entropy(model, *train)
        new = [i for i, level in enumerate(LEVELS) if at[i] is None and loss <= level]
        if new:
            top = largest(model, x, y)
            at = [top if i in new else before for i, before in enumerate(at)]
    return {
        "top": largest(model, x, y),
        "at": at,
        "train_loss": loss,
        "accuracy": accuracy(model, *test),
        "validation": accuracy(model, *held_out),
        "likelihood": -cross_entropy(model, *held_out),
    }


def largest(model: Model, x: Tensor, y: Tensor) -> float:
    return curvature(model, x, y, k=1, steps=STEPS, **SMOOTHED).top.item()


def cross_entropy(model: Model, x: Tensor, y: Tensor) -> float:
    return F.cross_entropy(outputs(model, x), y).item()


def grown(
    kind: str, data: Data, seed: int, *stops: int, recipe: Recipe = RECIPE
) -> Iterator[tuple[Model, Tensor, Tensor]]:
    """Trains a model; gives it after some numbers of steps, with training images and classes."""
    name, changes = MODELS[kind]
    torch.manual_seed(seed)
    run = Run(minivit.create(name, **changes), data, replace(recipe, seed=seed))
    whole = (data.train.images.float() / 255 - run.mean) / run.std
    chosen = evenly(len(whole), IMAGES)
    for stop in stops:
        while run.step < stop:
            run.advance()
        model = copy.deepcopy(run.model)
        update_bn([whole], model)
        yield model.eval(), whole[chosen], data.train.labels[chosen]


def spectrum(model: nn.Module, images: Tensor, classes: Tensor, **how: Any) -> Density:
    return density(model, images, classes, **{"probes": 2, "steps": STEPS} | SMOOTHED | how)


def described(whole: Density, batches: Maxima) -> Figures:
    """Figures of the spectrum, and of the largest eigenvalues by mini-batch."""
    return summary(whole) | {
        "maxima_negative": batches.negative,
        "maxima_positive": batches.positive,
        "maxima": batches.values.flatten(),
        "histogram": histogram(whole),
    }


def summary(whole: Density) -> Figures:
    """The outermost eigenvalues, with their errors, and what is negative."""
    top, bottom = whole.points[:, -1].argmax(), whole.points[:, 0].argmin()
    return {
        "negative": whole.negative.mean,
        "negative_half": whole.negative.half,
        "top": whole.points[top, -1],
        "top_error": whole.errors[top, -1],
        "bottom": whole.points[bottom, 0],
        "bottom_error": whole.errors[bottom, 0],
        "below": whole.below(-0.001).mean,
    }


def histogram(whole: Density) -> Tensor:
    """The share of all eigenvalues in each bin of the negative, then of the positive side."""
    shares = whole.shares.double().flatten() / len(whole.points)
    points = whole.points.double().flatten()
    sides = [torch.histogram(sign * points, EDGES, weight=shares).hist for sign in (-1, 1)]
    return torch.stack(sides)


def through_training() -> Figures:
    """Spectra of one ViT and one ResNet, after more and more steps on all digits."""
    figures: Figures = {"steps": [float(stop) for stop in STOPS]}
    for kind in ("vit", "resnet"):
        models = grown(kind, load_data("DIGITS"), 0, *STOPS)
        spectra = (spectrum(model, x, y) for model, x, y in models)
        figures[kind] = over_seeds(summary(s) | {"histogram": histogram(s)} for s in spectra)
    return figures


def of_cifar10(name: str) -> Figures:
    """Figures of a model that comes with the package, on images it was trained on."""
    model, part = minivit.load(name), inputs.pictures("CIFAR10", 64, "train")
    images = model.preprocess(part.images)
    return described(
        spectrum(model, images, part.labels, probes=1, batch_size=64),
        batch_maxima(model, images[:32], part.labels[:32], steps=10, batch_size=16, **SMOOTHED),
    )


BOTH = [(f"{kind}, {amount}", kind, amount) for amount in ("all", "tenth") for kind in MODELS]
THREE = "vit", "resnet", "hybrid"
ROWS: dict[str, Callable[[], Figures]] = {
    **{row: partial(early_and_late, kind, amount) for row, kind, amount in BOTH},
    **{f"{row}, probes": partial(by_seed, share, kind, of, EARLY) for row, kind, of in BOTH},
    **{
        f"{row}, {end}": partial(by_seed, at_other_ends, kind, of, *there)
        for end, there in ENDS.items()
        for row, kind, of in BOTH
        if row not in ("attention pool, tenth", "hybrid, all", "hybrid, tenth")
    },
    **{f"{kind}, all, relative": partial(by_seed, relative, kind, "all", LATE) for kind in THREE},
    **{f"{kind}, all, {n} x": partial(longer, kind, n) for kind in THREE for n in TIMES},
    "through training": through_training,
    **{name: partial(of_cifar10, name) for name in CIFAR10},
}
STUDY = Survey("curvature", ROWS, SEEDS, digits=".4g")
