"""How much a model needs each part: heads and branches switched off, one at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import torch
from jaxtyping import Float64, Integer
from torch import Tensor, nn

from minivit.recording import find, runnable, weights_of
from vitlab.calls import logits
from vitlab.instruments.ablation import By, Part, stand_ins, without
from vitlab.instruments.attentions import AXES, attentions
from vitlab.instruments.residuals import branches, last
from vitlab.instruments.running import Images, batches, chosen, evaluating, expect, with_classes


@dataclass(frozen=True, eq=False)
class Importance:
    """Loss and accuracy of a model without each of its parts, and of the whole."""

    names: tuple[str, ...]  # of blocks or branches, in the order they run
    loss: Float64[Tensor, "names *heads"]  # cross-entropy
    accuracy: Float64[Tensor, "names *heads"]
    whole_loss: float
    whole_accuracy: float


def branch_importance(
    model: nn.Module,
    images: Images,
    labels: Integer[Tensor, "batch"] | None = None,
    *names: str,
    by: By = "zero",
    reference: Images | None = None,
    seed: int = 0,
    batch_size: int = 64,
) -> Importance:
    """Switches every branch off, one at a time, and measures what the model is without it.

    Branches are the sub-layers with a residual connection around them, each attention and each MLP,
    found by :func:`~vitlab.instruments.residuals.residuals`, together with a norm after them, as in
    Swin v2. The model is any classifier, of minivit, torchvision, timm or Hugging Face.

    Args:
        labels: Default: what the whole model predicts.
        *names: The modules that give the branches, as for :func:`~minivit.recording.record`, where
            they are not found: in a ResNet, with a ReLU after each addition, the last norms of the
            blocks, ``"blocks.?.norm2"`` or torchvision's ``"layer?.?.bn3"``.
        by: What takes the place of the branch's output. With ``"zero"`` only the skip remains; but
            what the branch adds to every image alike is then missing too, and later layers meet
            tokens they never saw. ``"mean"`` (Wang et al., 2023) leaves that, token by token, and
            takes away what depends on the image. ``"resample"`` (Chan et al., 2022) gives the
            branch of another image: tokens such as do occur, and with them what belongs to it.
        reference: Images for the mean, or to draw the other images from, such as training images,
            so that nothing is learnt from those that are scored. Default: the same images.
        seed: Of the choice of the other images.
    """
    first, stream = batches(images, batch_size)
    if names:
        shown = ends = list(find(runnable(model), names)[0])
    else:
        shown, ends = branches(model, first), branches(model, first, last)
    parts = [Part(name) for name in ends]
    importance = _importance(model, stream, labels, parts, by, reference, seed, batch_size)
    return replace(importance, names=tuple(shown))


def head_importance(
    model: nn.Module,
    images: Images,
    labels: Integer[Tensor, "batch"] | None = None,
    *,
    by: By = "zero",
    reference: Images | None = None,
    seed: int = 0,
    batch_size: int = 64,
) -> Importance:
    """Switches every attention head off, one at a time, after Michel et al. (2019).

    The result is ``[blocks, heads]``, NaN where a block has fewer heads than others. Arguments are
    as for :func:`branch_importance`, but for ``by``: with ``"zero"`` the head is silent. With
    ``"mean"``, as in Hassid et al. (2022), and ``"resample"`` it still passes on this image's
    values, but looks where it looks in the mean, or for another image: what is lost is its choice
    of where to look.
    """
    first, stream = batches(images, batch_size)
    at = attentions(model, first)
    for a in at:
        expect(len(a.shape) >= 4, AXES, f"{list(a.shape)} in {a.name!r}")
    heads = torch.tensor([attention.heads for attention in at])
    there = torch.arange(int(heads.max())) < heads[:, None]  # [blocks, heads]
    parts = [Part(weights_of(at[block].name), head) for block, head in there.nonzero().tolist()]
    row = _importance(model, stream, labels, parts, by, reference, seed, batch_size)
    table = torch.full((2, *there.shape), torch.nan, dtype=torch.float64)
    table[:, there] = torch.stack([row.loss, row.accuracy])
    names = tuple(attention.name for attention in at)
    return replace(row, names=names, loss=table[0], accuracy=table[1])


def _importance(
    model: nn.Module,
    stream: Iterable[Tensor],
    labels: Tensor | None,
    parts: Sequence[Part],
    by: By,
    reference: Images | None,
    seed: int,
    batch_size: int,
) -> Importance:
    """Loss and accuracy of the whole model, and without each part."""
    expect(by in get_args(By), "by='zero', 'mean' or 'resample'", repr(by))
    others = None if reference is None else list(batches(reference, batch_size)[1])
    names = list(dict.fromkeys(part.name for part in parts))
    kept = [] if by == "zero" else list(stream)  # what stands in needs a pass of its own
    instead = stand_ins(model, kept, names, by, seed, others)
    sums = torch.zeros(2, 1 + len(parts), dtype=torch.float64)
    count = 0
    for (batch, some), new in zip(with_classes(kept or stream, labels), instead, strict=False):
        with evaluating(model):
            answers = [logits(model, batch)]
            true = chosen(some, answers[0]).cpu()
            for part in parts:
                with without(model, part, new):
                    answers.append(logits(model, batch))
        logs = torch.stack(answers).double().log_softmax(-1).cpu()  # [1 + parts, b, classes]
        sums[0] -= logs[:, torch.arange(len(batch)), true].sum(1)
        sums[1] += (logs.argmax(-1) == true).sum(1)
        count += len(batch)
    whole, rest = sums[:, 0] / count, sums[:, 1:] / count
    return Importance(tuple(part.name for part in parts), *rest, *whole.tolist())
