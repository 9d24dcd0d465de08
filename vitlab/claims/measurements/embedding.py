"""What the first layer does: patches that overlap or not, how wide, filters with a pattern."""

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minivit.recording import one
from vitlab.claims.measurements import parts
from vitlab.claims.measuring import Measured, Subject, before_training, measures, require
from vitlab.instruments import filter_spectra, first_filters, receptive_field
from vitlab.instruments.importance import without
from vitlab.instruments.representations import Places


def outside(model: nn.Module, image: Tensor, at: str) -> int:
    """Pixels outside its own patch on which any of 64 outputs of the middle place depends."""
    field, size = receptive_field(model, image, at), image.shape[2:]
    divides = not any(side % n for side, n in zip(size, field.grid, strict=True))
    require(divides, f"a grid of {field.grid} does not divide images of {tuple(size)}")
    sides = zip(field.place, size, field.grid, strict=True)
    rows, columns = (slice(i * side // n, (i + 1) * side // n) for i, side, n in sides)
    return int(field.support.sum() - field.support[rows, columns].sum())


def stem_of(model: nn.Module, image: Tensor) -> list[str]:
    """The convolutions before the first block: a patch embedding, or a stem of several."""
    names = parts.convolutions_before(model, image, parts.row_of_layers(model, image)[0])
    require(names, f"{type(model).__name__} has no convolution before its first block")
    return names


@measures("V30")
def reach_of_embedding(subject: Subject) -> Measured:
    """Pixels outside its own patch that reach an output of the patch embedding, of one image; a
    stem of several convolutions counts as a whole."""
    model, image = subject.model, subject.images[:1]
    parts.attention_of(model, image)  # nobody claims this of a convolutional network
    return Measured(outside(model, image, stem_of(model, image)[-1]))


@measures("V32")
def reach_without_addition(subject: Subject) -> Measured:
    """Pixels outside its own patch on which the token in the middle depends after the first block,
    if attention there keeps its weights but adds nothing; of one image."""
    model, image = subject.model, subject.images[:1]
    first = parts.row_of_layers(model, image)[0]
    attention = parts.attention_of(model, image)[0]
    require(attention.startswith(f"{first}."), f"the first block, {first!r}, has no attention")
    with without(model, attention):
        silent = outside(model, image, first)
    return Measured(silent, baselines={"with what attention adds": outside(model, image, first)})


@measures("V17")
def narrower(subject: Subject) -> Measured:
    """1 if tokens have fewer numbers than patches have pixel values, 0 if not."""
    model, image = subject.model, subject.images[:1]
    parts.attention_of(model, image)
    grids = Places(model, image).grids
    require(grids, "has no convolution, so its patches are not known")
    names = parts.row_of_layers(model, image)
    tokens = parts.outputs(model, image, names[:1], 1, first=True)[parts.FIRST]
    require(tokens.ndim == 3, f"its first block reads {list(tokens.shape)}, not tokens")
    return Measured(float(tokens.shape[2] < image.numel() / math.prod(grids[-1])))


@measures("V14")
def overlap(subject: Subject) -> Measured:
    """Fraction of the image's pixels in more than one window: the network's less the model's."""
    vit, network = (in_several(model, subject.images[:1]) for model in parts.compared(subject))
    return Measured(network - vit)


def in_several(model: nn.Module, image: Tensor) -> float:
    """Fraction of the pixels that lie in more than one window of the first convolution."""
    layer: Any = one(model, stem_of(model, image)[0])
    options = layer.kernel_size, layer.dilation, layer.padding, layer.stride
    pixels = torch.ones(1, 1, *image.shape[2:])
    windows = F.fold(F.unfold(pixels, *options), pixels.shape[2:], *options)
    return (windows > 1).double().mean().item()


def without_pattern(model: nn.Module) -> float:
    """The fraction of first filters with no more pattern than 99 in 100 of white noise."""
    return 1 - filter_spectra(first_filters(model)).structured().double().mean().item()


def filters_less_networks(subject: Subject, wide: bool) -> Measured:
    """Patch filters without a pattern, less the same of a convolutional network's first layer."""
    vit, network = parts.compared(subject)
    filters = first_filters(vit)
    layer = next(m for m in vit.modules() if isinstance(m, nn.Conv2d))
    embeds = layer.kernel_size == layer.stride
    require(embeds, f"its first convolution, {layer}, is not a patch embedding")
    features, values = len(filters), filters[0].numel()
    many = "at least as many features as" if wide else "fewer features than"
    counts = f"is about patches with {many} values: this model makes {features} of {values}"
    require(wide == (features >= values), counts)
    theirs = without_pattern(network)
    before = before_training(subject, lambda twin: without_pattern(twin.model) - theirs, vit)
    return Measured(without_pattern(vit) - theirs, baselines=before)


# Of patches with fewer features than values, and of those with at least as many.
measures("R29")(partial(filters_less_networks, wide=False))
measures("R31")(partial(filters_less_networks, wide=True))
