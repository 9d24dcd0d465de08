"""Low-pass, high-pass: what a model does to frequencies, and which it relies on."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from minivit.recording import record
from vitlab import instruments
from vitlab.claims.measurements.parts import attention_of, compared, mlps_of
from vitlab.claims.measuring import Measured, Subject, measures, needed, require, with_mean
from vitlab.instruments import high_pass, low_pass
from vitlab.instruments.frequency import LogAmplitude

# Lower ends of five bands in cycles per pixel; the lowest leaves the constant wave out.
BANDS = (1 / 64, 0.1, 0.2, 0.3, 0.4, 0.75)
LEVEL = 0.1  # root mean square of the noise, where black is 0 and white is 1
CUTOFFS = (2, 4, 8)  # cycles per image


def rises(
    subject: Subject, spectra_of: Callable[..., Any], start: str, stop: str
) -> dict[str, Float[Tensor, "groups"]]:
    """How the high frequencies, relative to the constant wave, change from one map of each layer to
    another: over all images, then over each group of them."""
    images, size = subject.groups(), subject.batch_size
    spectra = [spectra_of(subject.model, group, batch_size=size) for group in images]

    def high(name: str, end: str) -> Tensor:
        tables = [getattr(group[name], end).values for group in spectra]
        means = with_mean(tables, images)
        return torch.stack([LogAmplitude(mean).high for mean in means])

    return {name: (high(name, stop) - high(name, start)).float() for name in spectra[0]}


@measures("H04", untrained=True)
def convolutions_raise(subject: Subject) -> Measured:
    """Fraction of the 3 x 3 convolutions of stride 1 that raise the high frequencies."""
    layers = {n: m for n, m in subject.model.named_modules() if isinstance(m, nn.Conv2d)}
    wanted = (3, 3), (1, 1)
    convolutions = [n for n, m in layers.items() if (m.kernel_size, m.stride) == wanted]
    require(convolutions, "has no 3 x 3 convolution of stride 1")
    with torch.no_grad(), record(subject.model, *convolutions, detach=True) as ran:
        subject.model(subject.images[:1])

    def spectra(model: nn.Module, images: Tensor, **options: Any) -> Any:
        return instruments.layer_frequencies(model, images, *ran, **options)

    changes = torch.stack([*rises(subject, spectra, "before", "after").values()])
    figures = (changes > 0).double().mean(0)
    curves = {"change of the high": changes[:, 0]}
    return Measured(figures[0].item(), figures[1:].float(), curves=curves)


@measures("H23", untrained=True)
def stream_changes(subject: Subject) -> Measured:
    """Fraction of the sub-layers after which the residual stream, sum beside skip, is smoother
    (attention, except the first) or rougher (MLPs), as the source says."""
    mlps, attention = (of(subject.model, subject.images) for of in (mlps_of, attention_of))
    changes = rises(subject, instruments.stream_frequencies, "skip", "sum")
    kinds = (("attention", attention), ("MLP", mlps))
    parts = {kind: [name for name in names if name in changes] for kind, names in kinds}
    rough = (*mlps, attention[0])
    true = [changes[n] > 0 if n in rough else changes[n] < 0 for n in sum(parts.values(), [])]
    figures = torch.stack(true).double().mean(0)
    curves = {
        f"change of the high after {kind}": torch.tensor([changes[name][0] for name in names])
        for kind, names in parts.items()
    }
    return Measured(figures[0].item(), figures[1:].float(), curves=curves)


def kept_mean(images: Tensor, cutoff: float) -> Tensor:
    """High-pass images with the mean colour that they had."""
    return high_pass(images, cutoff) + images.mean((2, 3), keepdim=True)


def kept(model: nn.Module, subject: Subject) -> tuple[Tensor, Tensor]:
    """Accuracy above chance that a model keeps on low-pass and on high-pass images, by cutoff."""
    whole, chance = subject.beyond_chance(model)
    side = min(subject.images.shape[2:])

    def share(images: Tensor) -> float:
        return (subject.accuracy(model, images) - chance) / (whole - chance)

    low = [share(low_pass(subject.images, cutoff / side)) for cutoff in CUTOFFS]
    high = [share(kept_mean(subject.images, cutoff / side)) for cutoff in CUTOFFS]
    return torch.tensor(low), torch.tensor(high)


@measures("H26")
def low_and_high(subject: Subject) -> Measured:
    """Accuracy kept beside a network on low-pass images, less the same on high-pass ones."""
    subject.second(), subject.classes()  # before the models run
    (low, high), (their_low, their_high) = (kept(model, subject) for model in compared(subject))
    figure = (low.mean() - their_low.mean() - high.mean() + their_high.mean()).item()
    return Measured(figure, curves={"kept, low-pass": low, "kept, high-pass": high})


def lost(model: nn.Module, subject: Subject) -> Tensor:
    """Accuracy that a model loses under noise of equal power in each band."""
    white = needed(subject.white, "the values that the model reads for black and for white")
    images = subject.images
    step = torch.tensor(white).view(-1, 1, 1).to(images)
    whole, _ = subject.beyond_chance(model)
    n, channels, height, width = images.shape
    sizes = n, channels, (height, width)
    losses = []
    for i, (low, up) in enumerate(pairwise(BANDS)):
        noise = instruments.band_noise(*sizes, low, up, power=LEVEL**2, seed=i)
        losses.append(whole - subject.accuracy(model, images + step * noise.to(images)))
    return torch.tensor(losses)


@measures("H27")
def noise_by_band(subject: Subject) -> Measured:
    """Accuracy lost under noise in the lowest band less the highest, or a network's reversed."""
    subject.second(), subject.classes()  # before the models run
    mine, theirs = (lost(model, subject) for model in compared(subject))
    figure = min((mine[0] - mine[-1]).item(), (theirs[-1] - theirs[0]).item())
    return Measured(figure, curves={"accuracy lost": mine, "the other's": theirs})
