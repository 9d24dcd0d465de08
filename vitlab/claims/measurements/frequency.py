"""Low-pass, high-pass: what a model does to frequencies, and which it relies on."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from minivit.recording import record
from vitlab.claims.measurements.parts import both_kinds, compared
from vitlab.claims.measurements.subjects import (
    beyond_chance,
    groups,
    labels_of,
    right,
    second,
    weighted,
)
from vitlab.claims.measuring import Measured, NotApplicable, Subject, measures
from vitlab.instruments import (
    band_noise,
    high_pass,
    layer_frequencies,
    low_pass,
    stream_frequencies,
)
from vitlab.instruments.frequency import LogAmplitude

# Lower ends of five bands in cycles per pixel; the lowest leaves the constant wave out.
BANDS = (1 / 64, 0.1, 0.2, 0.3, 0.4, 0.75)
LEVEL = 0.1  # root mean square of the noise, where black is 0 and white is 1
CUTOFFS = (2, 4, 8)  # cycles per image


def rises(spectra: list[dict[str, Any]], images: list[Tensor], *ends: str) -> dict[str, float]:
    """How the high frequencies, relative to the constant wave, change from one map of each layer to
    another, over groups of images."""

    def high(name: str, end: str) -> float:
        amplitudes = [getattr(group[name], end).values for group in spectra]
        return LogAmplitude(weighted(amplitudes, images)).high.item()

    start, stop = ends
    return {name: high(name, stop) - high(name, start) for name in spectra[0]}


@measures("H04")
def convolutions_raise(subject: Subject) -> Measured:
    """Fraction of the 3 x 3 convolutions of stride 1 with more of the high frequencies in the
    output than in the input."""
    convolutions = [
        name
        for name, module in subject.model.named_modules()
        if isinstance(module, nn.Conv2d) and (module.kernel_size, module.stride) == ((3, 3), (1, 1))
    ]
    if not convolutions:
        raise NotApplicable("has no 3 x 3 convolution of stride 1")
    with torch.no_grad(), record(subject.model, *convolutions, detach=True) as ran:
        subject.model(subject.images[:1])
    images, size = groups(subject.images), subject.batch_size
    spectra = [layer_frequencies(subject.model, x, *ran, batch_size=size) for x in images]

    def fraction(changes: dict[str, float]) -> float:
        return sum(change > 0 for change in changes.values()) / len(changes)

    pairs = zip(spectra, images, strict=True)
    each = [fraction(rises([part], [x], "before", "after")) for part, x in pairs]
    changes = rises(spectra, images, "before", "after")
    curves = {"change of the high": torch.tensor(list(changes.values()))}
    return Measured(fraction(changes), torch.tensor(each), curves=curves)


@measures("H23")
def stream_changes(subject: Subject) -> Measured:
    """Fraction of the sub-layers after which the residual stream, sum beside skip, is smoother
    (attention, except the first) or rougher (MLPs), as the source says."""
    attention, mlps = both_kinds(subject.model, subject.images)
    images, size = groups(subject.images), subject.batch_size
    spectra = [stream_frequencies(subject.model, x, batch_size=size) for x in images]
    kinds = {"attention": attention, "MLP": mlps}
    spectra = [{n: part[n] for n in part if n in attention + mlps} for part in spectra]

    def fraction(changes: dict[str, float]) -> float:
        rough = (*mlps, attention[0])
        true = [change > 0 if name in rough else change < 0 for name, change in changes.items()]
        return sum(true) / len(true)

    pairs = zip(spectra, images, strict=True)
    each = [fraction(rises([part], [x], "skip", "sum")) for part, x in pairs]
    changes = rises(spectra, images, "skip", "sum")
    curves = {
        f"change of the high after {kind}": torch.tensor(
            [changes[n] for n in names if n in changes]
        )
        for kind, names in kinds.items()
    }
    return Measured(fraction(changes), torch.tensor(each), curves=curves)


def kept_mean(images: Tensor, cutoff: float) -> Tensor:
    """High-pass images with the mean colour that they had."""
    return high_pass(images, cutoff) + images.mean((2, 3), keepdim=True)


def kept(model: nn.Module, subject: Subject) -> tuple[Tensor, Tensor]:
    """Accuracy above chance that a model keeps on low-pass and on high-pass images, by cutoff."""
    labels, side = labels_of(subject), min(subject.images.shape[2:])
    whole, chance = beyond_chance(model, subject)

    def kept_of(images: Tensor) -> float:
        hits = right(model, images, labels, subject.batch_size)
        return (hits.double().mean().item() - chance) / (whole - chance)

    low, high = (
        torch.tensor([kept_of(passed(subject.images, cutoff / side)) for cutoff in CUTOFFS])
        for passed in (low_pass, kept_mean)
    )
    return low, high


@measures("H26")
def low_and_high(subject: Subject) -> Measured:
    """What the model keeps of its accuracy beside a convolutional network on low-pass images, less
    the same on high-pass ones."""
    second(subject), labels_of(subject)  # before the models run
    (low, high), (their_low, their_high) = (kept(model, subject) for model in compared(subject))
    return Measured(
        (low.mean() - their_low.mean() - high.mean() + their_high.mean()).item(),
        curves={"kept, low-pass": low, "kept, high-pass": high},
    )


def lost(model: nn.Module, subject: Subject) -> Tensor:
    """Accuracy that a model loses under noise of equal power in each band."""
    if subject.white is None:
        raise NotApplicable("needs the values that the model reads for black and for white")
    labels, images = labels_of(subject), subject.images
    white = torch.tensor(subject.white).view(-1, 1, 1).to(images)
    whole, _ = beyond_chance(model, subject)
    n, channels, *size = images.shape
    losses = []
    for i, (low, up) in enumerate(pairwise(BANDS)):
        noise = band_noise(n, channels, (size[0], size[1]), low, up, power=LEVEL**2, seed=i)
        hits = right(model, images + white * noise.to(images), labels, subject.batch_size)
        losses.append(whole - hits.double().mean().item())
    return torch.tensor(losses)


@measures("H27")
def noise_by_band(subject: Subject) -> Measured:
    """Accuracy lost under noise in the lowest band less the highest; reversed for the network; the
    smaller."""
    second(subject), labels_of(subject)  # before the models run
    mine, theirs = (lost(model, subject) for model in compared(subject))
    figure = min((mine[0] - mine[-1]).item(), (theirs[-1] - theirs[0]).item())
    return Measured(figure, curves={"accuracy lost": mine, "the other's": theirs})
