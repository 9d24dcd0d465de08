"""How much a model needs each part: heads and branches switched off, one at a time."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

import torch
from jaxtyping import Float64, Shaped
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.recording import find, record, runnable, tensors_in, weights_of
from minivit.replacing import replace
from vitlab.calls import logits
from vitlab.instruments.attentions import AXES, attentions
from vitlab.instruments.residuals import branches, last
from vitlab.instruments.running import Classes, Images, batches, evaluating, expect, with_classes

By = Literal["zero", "mean", "resample"]


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
    labels: Classes | None = None,
    *names: str,
    by: By = "zero",
    reference: Shaped[Tensor, "others channels height width"] | Iterable[Tensor] | None = None,
    batch_size: int = 64,
) -> Importance:
    """Switches every branch off, one at a time, and measures what the classifier is without it.

    Branches are the sub-layers with a residual connection around them, together with a norm after
    them. Where a ReLU hides the connection, as in ResNets, give the ``names`` of modules that the
    branches end in, ``"blocks.?.norm2"``. ``labels`` are by default what the whole model predicts.

    In place of the branch's output stands zero; or its ``"mean"`` (Wang et al., 2023), which leaves
    what it adds to every image alike; or by ``"resample"`` (Chan et al., 2022) that of another
    image. Mean and others are of the ``reference``, by default of the same images.
    """
    first, stream = batches(images, batch_size)
    if names:
        shown = ends = list(find(runnable(model), names)[0])
    else:
        shown, ends = branches(model, first), branches(model, first, last)
    parts = [(name, None) for name in ends]
    others = None if reference is None else list(batches(reference, batch_size)[1])
    whole, rest = _scores(model, stream, labels, parts, by, others)
    return Importance(tuple(shown), *rest, *whole.tolist())


def head_importance(
    model: nn.Module,
    images: Images,
    labels: Classes | None = None,
    *,
    by: By = "zero",
    batch_size: int = 64,
) -> Importance:
    """Switches every attention head off, one at a time, after Michel et al. (2019).

    The result is ``[blocks, heads]``, NaN where a block has fewer heads. By ``"zero"`` the head is
    silent; by ``"mean"``, as in Hassid et al. (2022), it looks where it does in the mean, and by
    ``"resample"`` where it does for another image.
    """
    first, stream = batches(images, batch_size)
    at = attentions(model, first)
    for a in at:
        expect(len(a.shape) >= 4, AXES, f"{list(a.shape)} in {a.name!r}")
    heads = torch.tensor([attention.heads for attention in at])
    there = torch.arange(int(heads.max())) < heads[:, None]  # [blocks, heads]
    parts = [(weights_of(at[block].name), head) for block, head in there.nonzero().tolist()]
    whole, rest = _scores(model, stream, labels, parts, by)
    table = torch.full((2, *there.shape), torch.nan, dtype=torch.float64)
    table[:, there] = rest
    return Importance(tuple(attention.name for attention in at), *table, *whole.tolist())


def _scores(
    model: nn.Module,
    stream: Iterable[Tensor],
    labels: Tensor | None,
    parts: Sequence[tuple[str, int | None]],
    by: By,
    reference: list[Tensor] | None = None,
) -> tuple[Float64[Tensor, "2"], Float64[Tensor, "2 parts"]]:
    """Loss and accuracy of the whole model, and without each part."""
    names = list(dict.fromkeys(name for name, _ in parts))
    kept = [] if by == "zero" else list(stream)  # what stands in needs a pass of its own
    instead = _stand_ins(model, kept, names, by, reference)
    sums, count = torch.zeros(2, 1 + len(parts), dtype=torch.float64), 0
    for (batch, class_of), new in zip(with_classes(kept or stream, labels), instead, strict=False):
        with evaluating(model):
            answers = [logits(model, batch)]
            true = class_of(answers[0]).cpu()
            for name, head in parts:
                with without(model, name, head, new.get(name, 0)):
                    answers.append(logits(model, batch))
        logs = torch.stack(answers).double().log_softmax(-1).cpu()  # [1 + parts, b, classes]
        sums[0] -= logs[:, torch.arange(len(batch)), true].sum(1)
        sums[1] += (logs.argmax(-1) == true).sum(1)
        count += len(batch)
    return sums[:, 0] / count, sums[:, 1:] / count


def without(
    model: nn.Module, name: str, head: int | None = None, instead: Tensor | int = 0
) -> AbstractContextManager[None]:
    """Switches off a module, or one head of attention weights: zeros, or ``instead``, go on."""

    def off(output: Any) -> Any:
        old = tensors_in(output)[0]
        new = torch.zeros_like(old).add_(instead)
        if head is not None:
            others = torch.arange(old.shape[1], device=old.device) != head
            new[:, others] = old[:, others]
        return tree_map_only(Tensor, lambda t: new if t is old else t, output)

    return replace(model, {name: off})


def _stand_ins(
    model: nn.Module, batches: list[Tensor], names: list[str], by: By, source: list[Tensor] | None
) -> Iterator[dict[str, Tensor]]:
    """What stands in for each name while a model runs on each batch: nothing by zero.

    By mean it is the mean over all images, by resample what the model gives for another image.
    """
    if by == "zero":
        return repeat({})

    def outputs(batch: Tensor) -> dict[str, Tensor]:
        with evaluating(model), record(model, *names, detach=True) as seen:
            model(batch)
        return {name: tensors_in(seen[name])[0] for name in names}

    alone = {name: x.shape for name, x in outputs(batches[0][:1]).items()}

    def by_image(batch: Tensor) -> dict[str, Tensor]:
        """What the model gives, after making sure that there is an entry for each image, or one."""
        tensors, count = outputs(batch), len(batch)
        for name, x in tensors.items():
            first, *rest = alone[name]
            fits = first == 1 and list(x.shape[1:]) == rest and len(x) in (1, count)
            got = f"{list(x.shape)}, and {[first, *rest]} for one image"
            expect(fits, f"{name!r} to give {[count, *rest]} for {count} images", got)
        return tensors

    if by == "mean":
        totals: dict[str, Tensor] = {}
        for batch in source or batches:
            for name, x in by_image(batch).items():
                totals[name] = totals.get(name, 0) + len(batch) * x.double().mean(0, keepdim=True)
        count = sum(map(len, source or batches))
        return repeat({name: total / count for name, total in totals.items()})
    images, sizes = torch.cat(source or batches), [len(batch) for batch in batches]
    if source is None:
        order = other_images(len(images))
    else:
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
        order = order.repeat(-(-sum(sizes) // len(images)))[: sum(sizes)]
    return (by_image(batch) for batch in images[order].split(sizes))


def other_images(count: int) -> Tensor:
    """For each image another one: the next in a random cycle through all of them."""
    expect(count > 1, "two images or more, to put in another's by='resample'", count)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return torch.empty_like(order).scatter_(0, order, order.roll(-1))
