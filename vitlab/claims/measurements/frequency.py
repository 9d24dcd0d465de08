"""Low-pass, high-pass: what a model does to frequencies, and which it relies on."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from minivit.recording import record
from vitlab import instruments
from vitlab.claims.measurements import subjects
from vitlab.claims.measurements.parts import both_kinds, compared
from vitlab.claims.measuring import Measured, NotApplicable, Subject, measures, require
from vitlab.instruments import high_pass, low_pass
from vitlab.instruments.frequency import LogAmplitude

# Lower ends of five bands in cycles per pixel; the lowest leaves the constant wave out.
BANDS = (1 / 64, 0.1, 0.2, 0.3, 0.4, 0.75)
LEVEL = 0.1  # root mean square of the noise, where black is 0 and white is 1
CUTOFFS = (2, 4, 8)  # cycles per image


def rises(
    subject: Subject, spectra_of: Callable[[Tensor], Any], start: str, stop: str
) -> list[dict[str, float]]:
    """How the high frequencies, relative to the constant wave, change from one map of each layer to
    another: over all images, then over each group of them."""
    images = subjects.groups(subject.images)
    spectra = [spectra_of(group) for group in images]

    def rise(name: str, parts: slice) -> float:
        first, last = (
            subjects.weighted(
                [getattr(group[name], end).values for group in spectra[parts]], images[parts]
            )
            for end in (start, stop)
        )
        return LogAmplitude(last).high.item() - LogAmplitude(first).high.item()

    parts = [slice(None), *(slice(i, i + 1) for i in range(len(images)))]
    return [{name: rise(name, part) for name in spectra[0]} for part in parts]


@measures("H04")
def convolutions_raise(subject: Subject) -> Measured:
    """Fraction of the 3 x 3 convolutions of stride 1 that raise the high frequencies."""
    convolutions = [
        name
        for name, module in subject.model.named_modules()
        if isinstance(module, nn.Conv2d) and (module.kernel_size, module.stride) == ((3, 3), (1, 1))
    ]
    require(convolutions, "has no 3 x 3 convolution of stride 1")
    with torch.no_grad(), record(subject.model, *convolutions, detach=True) as ran:
        subject.model(subject.images[:1])

    def spectra(images: Tensor) -> Any:
        size = subject.batch_size
        return instruments.layer_frequencies(subject.model, images, *ran, batch_size=size)

    changes = [
        torch.tensor([*rise.values()]) for rise in rises(subject, spectra, "before", "after")
    ]
    figure, *by_group = (change.gt(0).double().mean().item() for change in changes)
    return Measured(figure, torch.tensor(by_group), curves={"change of the high": changes[0]})


@measures("H23")
def stream_changes(subject: Subject) -> Measured:
    """Fraction of the sub-layers after which the residual stream, sum beside skip, is smoother
    (attention, except the first) or rougher (MLPs), as the source says."""
    attention, mlps = both_kinds(subject.model, subject.images)

    def spectra(images: Tensor) -> Any:
        size = subject.batch_size
        part = instruments.stream_frequencies(subject.model, images, batch_size=size)
        return {name: part[name] for name in part if name in attention + mlps}

    def fraction(changes: dict[str, float]) -> float:
        rough = (*mlps, attention[0])
        true = [change > 0 if name in rough else change < 0 for name, change in changes.items()]
        return sum(true) / len(true)

    whole, *by_group = rises(subject, spectra, "skip", "sum")
    curves = {
        f"change of the high after {kind}": torch.tensor([whole[n] for n in names if n in whole])
        for kind, names in (("attention", attention), ("MLP", mlps))
    }
    return Measured(fraction(whole), torch.tensor([*map(fraction, by_group)]), curves=curves)


def kept_mean(images: Tensor, cutoff: float) -> Tensor:
    """High-pass images with the mean colour that they had."""
    return high_pass(images, cutoff) + images.mean((2, 3), keepdim=True)


def kept(model: nn.Module, subject: Subject) -> tuple[Tensor, Tensor]:
    """Accuracy above chance that a model keeps on low-pass and on high-pass images, by cutoff."""
    whole, chance = subjects.beyond_chance(model, subject)
    side = min(subject.images.shape[2:])
    low, high = (
        torch.tensor([
            (subjects.accuracy(model, subject, passed(subject.images, cutoff / side)) - chance)
            / (whole - chance)
            for cutoff in CUTOFFS
        ])
        for passed in (low_pass, kept_mean)
    )  # fmt: skip
    return low, high


@measures("H26")
def low_and_high(subject: Subject) -> Measured:
    """Accuracy kept beside a network on low-pass images, less the same on high-pass ones."""
    subjects.second(subject), subjects.labels_of(subject)  # before the models run
    (low, high), (their_low, their_high) = (kept(model, subject) for model in compared(subject))
    return Measured(
        (low.mean() - their_low.mean() - high.mean() + their_high.mean()).item(),
        curves={"kept, low-pass": low, "kept, high-pass": high},
    )


def lost(model: nn.Module, subject: Subject) -> Tensor:
    """Accuracy that a model loses under noise of equal power in each band."""
    if subject.white is None:
        raise NotApplicable("needs the values that the model reads for black and for white")
    images = subject.images
    white = torch.tensor(subject.white).view(-1, 1, 1).to(images)
    whole, _ = subjects.beyond_chance(model, subject)
    n, channels, *sides = images.shape
    size = sides[0], sides[1]
    losses = []
    for i, (low, up) in enumerate(pairwise(BANDS)):
        noise = instruments.band_noise(n, channels, size, low, up, power=LEVEL**2, seed=i)
        noisy = images + white * noise.to(images)
        losses.append(whole - subjects.accuracy(model, subject, noisy))
    return torch.tensor(losses)


@measures("H27")
def noise_by_band(subject: Subject) -> Measured:
    """Accuracy lost under noise in the lowest band less the highest, or a network's reversed."""
    subjects.second(subject), subjects.labels_of(subject)  # before the models run
    mine, theirs = (lost(model, subject) for model in compared(subject))
    figure = min((mine[0] - mine[-1]).item(), (theirs[-1] - theirs[0]).item())
    return Measured(figure, curves={"accuracy lost": mine, "the other's": theirs})
