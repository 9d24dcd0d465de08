"""Low-pass, high-pass: what a model does to frequencies, and which it relies on."""

import torch
from torch import Tensor, nn

from minivit.recording import record
from vitlab.claims.probe import CannotAsk, Measured, Subject, probe
from vitlab.claims.probes.parts import both_kinds, compared
from vitlab.claims.probes.subjects import (
    beyond_chance,
    groups,
    labels_of,
    right,
    second,
    spread,
    weighted,
)
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


def high(parts: list[LogAmplitude], some: list[Tensor]) -> float:
    """The high frequencies, relative to the constant wave, over all groups of images."""
    return LogAmplitude(weighted([part.values for part in parts], some)).high.item()


@probe("H04", "What fraction of this model's 3 x 3 convolutions raise the high frequencies?")
def convolutions_raise(subject: Subject) -> Measured:
    """Of those of stride 1: more of the high frequencies in the output than in the input."""
    convolutions = {
        name: module
        for name, module in subject.model.named_modules()
        if isinstance(module, nn.Conv2d) and (module.kernel_size, module.stride) == ((3, 3), (1, 1))
    }
    if not convolutions:
        raise CannotAsk("has no 3 x 3 convolution of stride 1")
    with torch.no_grad(), record(subject.model, *convolutions, detach=True) as ran:
        subject.model(subject.images[:1])
    some = groups(subject.images)
    found = [layer_frequencies(subject.model, x, *ran, batch_size=subject.batch_size) for x in some]

    def rises(seen: list, over: list[Tensor]) -> list[float]:
        ends = (([g[name].before for g in seen], [g[name].after for g in seen]) for name in seen[0])
        return [high(after, over) - high(before, over) for before, after in ends]

    def share(seen: list, over: list[Tensor]) -> float:
        changes = rises(seen, over)
        return sum(change > 0 for change in changes) / len(changes)

    each = [share([one], [x]) for one, x in zip(found, some, strict=True)]
    changes = torch.tensor(rises(found, some))
    return Measured(share(found, some), spread(each), curves={"change of the high": changes})


@probe(
    "H23",
    "After what fraction of its sub-layers does this model's residual stream change as the source"
    " says: smoother after attention, except the first, and rougher after an MLP?",
)
def stream_changes(subject: Subject) -> Measured:
    """By the high frequencies, relative to the constant wave, of sum and skip."""
    attention, mlps = both_kinds(subject.model, subject.images)
    some = groups(subject.images)
    found = [stream_frequencies(subject.model, x, batch_size=subject.batch_size) for x in some]

    def rises(seen: list, over: list[Tensor]) -> dict[str, float]:
        return {
            name: high([g[name].sum for g in seen], over) - high([g[name].skip for g in seen], over)
            for name in seen[0]
            if name in attention + mlps
        }

    def share(seen: list, over: list[Tensor]) -> float:
        up = rises(seen, over)
        rough = [*mlps, attention[0]]
        true = [change > 0 if name in rough else change < 0 for name, change in up.items()]
        return sum(true) / len(true)

    each = [share([one], [x]) for one, x in zip(found, some, strict=True)]
    by_part = rises(found, some)
    curves = {
        f"change of the high after {kind}": torch.tensor(
            [by_part[n] for n in names if n in by_part]
        )
        for kind, names in (("attention", attention), ("MLP", mlps))
    }
    return Measured(share(found, some), spread(each), curves=curves)


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


@probe(
    "H26",
    "How much more does this model rely on low frequencies than a convolutional network does?",
    needs=(second, labels_of),
)
def low_and_high(subject: Subject) -> Measured:
    """What it keeps of its accuracy beside the other's on low-pass images, less on high-pass."""
    (low, high), (their_low, their_high) = (kept(model, subject) for model in compared(subject))
    return Measured(
        (low.mean() - their_low.mean() - high.mean() + their_high.mean()).item(),
        curves={"kept, low-pass": low, "kept, high-pass": high},
    )


def lost(model: nn.Module, subject: Subject) -> Tensor:
    """Accuracy that a model loses under noise of equal power in each band."""
    if subject.white is None:
        raise CannotAsk("needs the values that the model reads for black and for white")
    labels, images = labels_of(subject), subject.images
    white = torch.tensor(subject.white).view(-1, 1, 1).to(images)

    whole, _ = beyond_chance(model, subject)
    found = []
    for i, (low, up) in enumerate(zip(BANDS, BANDS[1:], strict=False)):
        n, channels, *size = images.shape
        noise = band_noise(n, channels, (size[0], size[1]), low, up, power=LEVEL**2, seed=i)
        hits = right(model, images + white * noise.to(images), labels, subject.batch_size)
        found.append(whole - hits.double().mean().item())
    return torch.tensor(found)


@probe(
    "H27",
    "Is this model misled most by low-frequency noise, and a convolutional network by "
    "high-frequency noise?",
    needs=(second, labels_of),
)
def noise_by_band(subject: Subject) -> Measured:
    """Accuracy lost under the lowest band less the highest; reversed for the other; the smaller."""
    mine, theirs = (lost(model, subject) for model in compared(subject))
    figure = min((mine[0] - mine[-1]).item(), (theirs[-1] - theirs[0]).item())
    return Measured(figure, curves={"accuracy lost": mine, "the other's": theirs})
