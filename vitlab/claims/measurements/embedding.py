"""What the first layer does: patches that overlap or not, how wide, filters with a pattern."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from minivit.recording import one, runnable
from vitlab.calls import sublayer
from vitlab.claims.measurements import parts
from vitlab.claims.measuring import Measured, Subject, measures, require
from vitlab.instruments import filter_spectra, first_filters, receptive_field
from vitlab.instruments.importance import without
from vitlab.instruments.representations import Places
from vitlab.instruments.residuals import branches
from vitlab.instruments.running import evaluating


def stem_of(model: nn.Module, image: Tensor) -> list[str]:
    """The convolutions before the first block: a patch embedding, or a stem of several."""
    block = one(model, parts.row_of_layers(model, image)[0])
    ran: list[nn.Module] = []
    with evaluating(model), register_module_forward_pre_hook(lambda module, _: ran.append(module)):
        model(image)
    names = {module: name for name, module in runnable(model).items()}
    stem = [names[part] for part in ran[: ran.index(block)] if isinstance(part, nn.Conv2d)]
    require(stem, f"{type(model).__name__} has no convolution before its first block")
    return stem


def window(layers: Sequence[Any], place: Sequence[int]) -> tuple[slice, ...]:
    """Rows and columns of the pixels that convolutions, one after another, show to a place."""
    ends = []
    for axis, first in enumerate(place):
        last = first
        for layer in reversed(layers):
            padding = layer._reversed_padding_repeated_twice[2 - 2 * axis]  # "same", too
            width = layer.dilation[axis] * (layer.kernel_size[axis] - 1)
            first, last = (x * layer.stride[axis] - padding for x in (first, last))
            last += width
        ends.append(slice(max(first, 0), last + 1))
    return tuple(ends)


@measures("V30")
def reach_of_embedding(subject: Subject) -> Measured:
    """Pixels beyond the window of a patch embedding, or of a whole stem of convolutions, that reach
    an output of it; of one image."""
    model, image = subject.model, subject.images[:1]
    parts.require_attention(model, image)
    names = stem_of(model, image)
    field = receptive_field(model, image, names[-1])
    beyond = field.support.clone()
    beyond[window([one(model, name) for name in names], field.place)] = False
    return Measured(int(beyond.sum()))


@measures("V32")
def reach_without_addition(subject: Subject) -> Measured:
    """Pixels on which the token in the middle depends after the first block, if attention there
    keeps its weights but adds nothing, but not on what the block reads; of one image."""
    model, image = subject.model, subject.images[:1]
    first = parts.row_of_layers(model, image)[0]
    attention = parts.attention_of(model, image)[0]
    require(attention.startswith(f"{first}."), f"the first block, {first!r}, has no attention")

    def seen(*off: str) -> Tensor:
        with ExitStack() as stack:
            for name in off:
                stack.enter_context(without(model, name))
            return receptive_field(model, image, first).support

    read = seen(*(name for name in branches(model, image) if name.startswith(f"{first}.")))
    silent, all_of_it = (int((field & ~read).sum()) for field in (seen(attention), seen()))
    return Measured(silent, baselines={"with what attention adds": all_of_it})


@measures("V17")
def narrower(subject: Subject) -> Measured:
    """1 if tokens have fewer numbers than patches have pixel values, 0 if not."""
    model, image = subject.model, subject.images[:1]
    parts.require_attention(model, image)
    grids = Places(model, image).grids
    require(grids, "has no convolution, so its patches are not known")
    _, tokens = sublayer(model, parts.row_of_layers(model, image)[0], image)
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
    return Measured(without_pattern(vit) - without_pattern(network))


# Of patches with fewer features than values, and of those with at least as many.
measures("R29", untrained=True)(partial(filters_less_networks, wide=False))
measures("R31", untrained=True)(partial(filters_less_networks, wide=True))
