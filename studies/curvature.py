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
from studies.shared.digit_models import fraction_of
from studies.shared.inputs import model as shipped
from studies.shared.inputs import pictures
from vitlab.data import Data, load_data
from vitlab.instruments.curvature import batch_maxima, curvature
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
STOPS = (0, 5, 10, 20, 50, 100, 200)
# Of the histograms: from 0.001 to 100 on both sides of zero, eight bins to a factor of ten.
EDGES = torch.logspace(-3, 2, 41, dtype=torch.float64)


def measure(name: str, rehearsal: bool) -> Figures:
    """The figures of one row."""
    if name in CIFAR10:
        return of_cifar10(name, rehearsal)
    if name == THROUGH:
        return through_training(rehearsal)
    kind, amount, *figure = name.split(", ")
    if figure:
        return {"probes": shares, "relative": relative}[figure[0]](kind, amount, rehearsal)
    found: dict[str, Any] = {}
    for seed in SEEDS[:1] if rehearsal else SEEDS:
        data = digits(amount, seed)
        stops = (1, 2) if rehearsal else (EARLY, LATE)
        trained = grown(kind, data, seed, stops)
        for stage, (model, images, classes) in zip(("early", "late"), trained, strict=True):
            if rehearsal:
                images, classes = images[:16], classes[:16]
            figures = measured(model, images, classes, rehearsal)
            figures["accuracy"] = accuracy(model, data)
            if stage == "late":
                how: dict[str, Any] = {"steps": 2 if rehearsal else 8, "label_smoothing": 0.1}
                of = curvature(model, images, classes, k=1, gauss_newton=True, **how)
                figures["gauss_newton"] = of.top.item()
            if stage == "early" and has_batch_norm(model):
                seen = spectrum(model, images, classes, rehearsal, batch_statistics=True)
                figures["batch"] = summary(seen)
            add(found.setdefault(stage, {}), figures)
    return short(found)


def digits(amount: str, seed: int) -> Data:
    """All digits, or a tenth of them."""
    whole = load_data("DIGITS")
    return whole if amount == "all" else fraction_of(whole, 0.1, seed)


def shares(kind: str, amount: str, rehearsal: bool) -> Figures:
    """Of five models early in training, the share of negative curvature and its 95 % interval."""
    found: dict[str, Any] = {}
    for seed in SEEDS[:1] if rehearsal else SEEDS:
        stop = 1 if rehearsal else EARLY
        ((model, images, classes),) = grown(kind, digits(amount, seed), seed, (stop,))
        probes, steps = (2, 3) if rehearsal else (PROBES, 20)
        how: dict[str, Any] = {"probes": probes, "steps": steps, "label_smoothing": 0.1}
        seen = density(model, images, classes, seed=1 + seed, **how)
        add(found, {"negative": seen.negative.mean, "negative_half": seen.negative.half})
    return short(found)


def relative(kind: str, amount: str, rehearsal: bool) -> Figures:
    """Of five trained models, the largest eigenvalue with each weight's step in its own units."""
    found: dict[str, Any] = {}
    for seed in SEEDS[:1] if rehearsal else SEEDS:
        stop, steps = (1, 2) if rehearsal else (LATE, 20)
        ((model, images, classes),) = grown(kind, digits(amount, seed), seed, (stop,))
        how: dict[str, Any] = {"k": 1, "steps": steps, "label_smoothing": 0.1}
        seen = curvature(model, images, classes, relative=True, **how)
        add(found, {"top": seen.top.item(), "top_error": seen.top_errors.item()})
    return short(found)


def grown(
    kind: str, data: Data, seed: int, stops: tuple[int, ...]
) -> Iterator[tuple[Model, Tensor, Tensor]]:
    """Trains a model; gives it after some numbers of steps, with training images and classes."""
    name, changes = MODELS[kind]
    torch.manual_seed(seed)
    run = Run(minivit.create(name, **changes), data, replace(RECIPE, seed=seed))
    whole = (data.train.images.float() / 255 - run.mean) / run.std
    chosen = torch.linspace(0, len(whole) - 1, IMAGES).round().long()
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


def measured(model: nn.Module, images: Tensor, classes: Tensor, rehearsal: bool) -> Figures:
    """Figures of the Hessian on all images at once, and mini-batch by mini-batch."""
    seen = spectrum(model, images, classes, rehearsal)
    steps = 5 if rehearsal else 10
    batches = batch_maxima(model, images, classes, steps=steps, label_smoothing=0.1)
    return summary(seen) | {
        "maxima_negative": batches.negative,
        "maxima_positive": batches.positive,
        "maxima": batches.values.flatten(),
        "histogram": histogram(seen),
    }


def spectrum(
    model: nn.Module, images: Tensor, classes: Tensor, rehearsal: bool, **how: Any
) -> Density:
    """The spectral density, as everywhere in this study."""
    probes, steps = (2, 3) if rehearsal else (2, 20)
    how |= {"probes": probes, "steps": steps, "label_smoothing": 0.1}
    return density(model, images, classes, **how)


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


def accuracy(model: nn.Module, data: Data) -> float:
    """On the test part."""
    images = data.test.images.float() / 255
    images = (images - torch.tensor(data.mean).view(-1, 1, 1)) / torch.tensor(data.std).view(
        -1, 1, 1
    )
    with torch.no_grad():
        return (model(images).argmax(1) == data.test.labels).double().mean().item()


def through_training(rehearsal: bool) -> Figures:
    """Spectra of one ViT and one ResNet, after more and more steps on all digits."""
    stops = (0, 1) if rehearsal else STOPS
    found: dict[str, Any] = {"steps": list(stops)}
    for kind in ("vit", "resnet"):
        for model, images, classes in grown(kind, load_data("DIGITS"), 0, stops):
            few = slice(16 if rehearsal else None)
            seen = spectrum(model, images[few], classes[few], rehearsal)
            add(found.setdefault(kind, {}), summary(seen) | {"histogram": histogram(seen)})
    return short(found)


def of_cifar10(name: str, rehearsal: bool) -> Figures:
    """Figures of a model that comes with the package, on images it was trained on."""
    model = shipped(name)
    if rehearsal:
        images, classes = torch.randn(16, 3, 32, 32), torch.arange(16) % 10
    else:
        part = pictures("CIFAR10", 64, "train")
        images, classes = model.preprocess(part.images), part.labels
    steps = 2 if rehearsal else 20
    how: dict[str, Any] = {"label_smoothing": 0.1, "batch_size": 64}
    seen = density(model, images, classes, probes=1, steps=steps, **how)
    how |= {"steps": 5 if rehearsal else 10, "batch_size": 16}
    batches = batch_maxima(model, images[:32], classes[:32], **how)
    return short(
        summary(seen)
        | {"maxima_negative": batches.negative, "maxima_positive": batches.positive}
        | {"maxima": batches.values.flatten(), "histogram": histogram(seen)}
    )


def add(rows: dict[str, Any], figures: Figures) -> None:
    """Appends each figure to the list of its name."""
    for key, value in figures.items():
        if isinstance(value, dict):
            add(rows.setdefault(key, {}), value)
        else:
            rows.setdefault(key, []).append(value)


def short(found: Any) -> Any:
    """Figures as JSON has them, to four digits; none where there is no number."""
    if isinstance(found, dict):
        return {key: short(value) for key, value in found.items()}
    if isinstance(found, Tensor):
        found = found.tolist()
    if isinstance(found, list):
        return [short(x) for x in found]
    return float(f"{found:.4g}") if found == found else None


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
