"""What the first layer does: patches that overlap or not, how wide, filters with a pattern."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minivit.recording import one
from vitlab.claims.probe import CannotAsk, Measured, Subject, probe
from vitlab.claims.probes.parts import (
    FIRST,
    attention_of,
    compared,
    convolutions_before,
    outputs,
    row_of_layers,
)
from vitlab.claims.probes.subjects import before_training, second
from vitlab.instruments import filter_spectra, first_filters, receptive_field
from vitlab.instruments.ablation import Part, without
from vitlab.instruments.representations import patch_grid


def own_patch(size: tuple[int, int], grid: tuple[int, int], place: tuple[int, int]) -> Tensor:
    """The pixels of a patch: ``[height, width]`` of truth values.

    Raises:
        ValueError: The grid does not divide the image.
    """
    if any(side % n for side, n in zip(size, grid, strict=True)):
        raise ValueError(f"a grid of {grid} does not divide images of {size}")
    cells = [torch.arange(side) // (side // n) for side, n in zip(size, grid, strict=True)]
    return (cells[0] == place[0])[:, None] & (cells[1] == place[1])


def outside(model: nn.Module, images: Tensor, at: str) -> int:
    """Pixels outside its own patch on which any of 64 outputs of the middle place depends."""
    field = receptive_field(model, images, at)
    own = own_patch((images.shape[2], images.shape[3]), field.grid, field.place)
    return int((field.support & ~own).sum())


def stem_of(model: nn.Module, images: Tensor) -> list[str]:
    """The convolutions before the first block: a patch embedding, or a stem of several."""
    found = convolutions_before(model, images, row_of_layers(model, images)[0])
    if not found:
        raise CannotAsk(f"{type(model).__name__} has no convolution before its first block")
    return found


@probe(
    "V30",
    "How many pixels outside its own patch affect an output of this model's patch embedding?",
)
def reach_of_embedding(subject: Subject) -> Measured:
    """Of one image; a stem of several convolutions counts as a whole."""
    attention_of(subject.model, subject.images)  # nobody claims this of a convolutional network
    image = subject.images[:1]
    return Measured(outside(subject.model, image, stem_of(subject.model, image)[-1]))


@probe(
    "V32",
    "On how many pixels outside its own patch does a token after this model's first block depend,"
    " if attention there keeps its weights but adds nothing?",
)
def reach_without_addition(subject: Subject) -> Measured:
    """Pixels outside its own patch on which the token in the middle depends, of one image."""
    model, image = subject.model, subject.images[:1]
    first = row_of_layers(model, image)[0]
    attention = attention_of(model, image)[0]
    if not attention.startswith(f"{first}."):
        raise CannotAsk(f"the first block, {first!r}, has no attention")
    with without(model, Part(attention), {}):
        silent = outside(model, image, first)
    return Measured(silent, baselines={"with what attention adds": outside(model, image, first)})


@probe("V17", "Do this model's tokens have fewer numbers than its patches have pixel values?")
def narrower(subject: Subject) -> Measured:
    """1 if they do, 0 if not: the fraction of one model."""
    model, image = subject.model, subject.images[:1]
    attention_of(model, image)
    grid = patch_grid(model, image)
    if grid is None:
        raise CannotAsk("has no convolution, so its patches are not known")
    names = row_of_layers(model, image)
    tokens = outputs(model, image, names[:1], 1, first=names[0])[FIRST]
    if tokens.ndim != 3:
        raise CannotAsk(f"its first block reads {list(tokens.shape)}, not tokens")
    return Measured(float(tokens.shape[2] < image.numel() / (grid[0] * grid[1])))


@probe(
    "V14",
    "Do the windows of a convolutional network's first layer overlap, while this model's "
    "patches do not?",
    needs=(second,),
)
def overlap(subject: Subject) -> Measured:
    """Fraction of the image's pixels in more than one window: the network's less the model's."""
    vit, network = compared(subject)
    shares = [in_several(model, subject.images[:1]) for model in (vit, network)]
    return Measured(shares[1] - shares[0])


def in_several(model: nn.Module, image: Tensor) -> float:
    """Fraction of the pixels that lie in more than one window of the first convolution."""
    layer = one(model, stem_of(model, image)[0])
    assert isinstance(layer, nn.Conv2d)
    x = torch.ones(1, 1, *image.shape[2:], requires_grad=True)
    ones = torch.ones(1, 1, *layer.kernel_size)
    with torch.enable_grad():
        places = F.conv2d(x, ones, None, layer.stride, layer.padding, layer.dilation)
        (windows,) = torch.autograd.grad(places.sum(), x)
    return (windows > 1).double().mean().item()


def without_pattern(model: nn.Module) -> float:
    """The fraction of first filters with no more pattern than white noise."""
    return 1 - filter_spectra(first_filters(model)).structured().double().mean().item()


def filters_beside(subject: Subject, wide: bool) -> Measured:
    """Patch filters without a pattern, less the same of a convolutional network's first layer."""
    vit, network = compared(subject)
    filters = first_filters(vit)
    layer = next(m for m in vit.modules() if isinstance(m, nn.Conv2d))
    if layer.kernel_size != layer.stride:
        raise CannotAsk(f"its first convolution, {layer}, is not a patch embedding")
    features, values = len(filters), filters[0].numel()
    if wide != (features >= values):
        many = "at least as many features as values" if wide else "fewer features than values"
        raise CannotAsk(f"is about patches with {many}: this model makes {features} of {values}")
    theirs = without_pattern(network)
    mine = subject.model is vit
    baselines = (
        before_training(subject, lambda s: without_pattern(s.model) - theirs) if mine else {}
    )
    return Measured(without_pattern(vit) - theirs, baselines=baselines)


@probe(
    "R29",
    "With fewer features than patch values, how much larger is the fraction of filters without a "
    "pattern in this model's patch embedding than in a convolutional network's first layer?",
    needs=(second,),
)
def narrow_filters(subject: Subject) -> Measured:
    """The difference of fractions; a pattern is what one filter of white noise in 100 has."""
    return filters_beside(subject, wide=False)


@probe(
    "R31",
    "With no fewer features than patch values, how much larger is the fraction of filters without "
    "a pattern in this model's patch embedding than in a convolutional network's first layer?",
    needs=(second,),
)
def wide_filters(subject: Subject) -> Measured:
    """As for R29, of patches with at least as many features as values."""
    return filters_beside(subject, wide=True)
