"""Parts of a model switched off, and what takes their place: zeros, a mean, another image's."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.recording import record, tensors_in
from minivit.replacing import replace
from vitlab.instruments.running import evaluating, expect

By = Literal["zero", "mean", "resample"]


@dataclass(frozen=True)
class Part:
    """What is switched off, by a name for :func:`~minivit.replacing.replace`."""

    name: str
    head: int | None = None  # of attention weights, only this head


def without(
    model: nn.Module, part: Part, instead: dict[str, Tensor]
) -> AbstractContextManager[None]:
    """Switches a part off: zeros take its place unless something else does."""

    def off(output: Any) -> Any:
        old = tensors_in(output)[0]
        new = torch.zeros_like(old)
        if part.name in instead:
            new += instead[part.name]
        if part.head is not None:
            head = new[:, part.head]
            new = old.clone()
            new[:, part.head] = head
        return tree_map_only(Tensor, lambda t: new if t is old else t, output)

    return replace(model, {part.name: off})


def stand_ins(
    model: nn.Module,
    batches: list[Tensor],
    names: Sequence[str],
    by: By,
    seed: int,
    reference: list[Tensor] | None = None,
) -> Iterator[dict[str, Tensor]]:
    """What stands in for each name while a model runs on each batch: nothing by zero.

    By mean it is the mean over all images, for every token its own; by resample, what the model
    gives for another image. Each image is another's once. With batches of reference images, it is
    their mean, or what the model gives for one of them, all as often as can be.
    """
    if by == "zero":
        return repeat({})
    alone = {name: x.shape for name, x in outputs(model, names, batches[0][:1]).items()}

    def each(batch: Tensor) -> dict[str, Tensor]:
        """What the model gives, after making sure that there is an entry for each image, or one."""
        tensors, count = outputs(model, names, batch), len(batch)
        for name, x in tensors.items():
            first, *rest = alone[name]
            fits = first == 1 and list(x.shape[1:]) == rest and len(x) in (1, count)
            got = f"{list(x.shape)}, and {[first, *rest]} for one image"
            expect(fits, f"{name!r} to give {[count, *rest]} for {count} images", got)
        return tensors

    if by == "mean":
        totals: dict[str, Tensor] = {}
        averaged = batches if reference is None else reference
        for batch in averaged:
            for name, x in each(batch).items():
                totals[name] = totals.get(name, 0) + len(batch) * x.double().mean(0, keepdim=True)
        count = sum(map(len, averaged))
        return repeat({name: total / count for name, total in totals.items()})
    sizes = [len(batch) for batch in batches]
    if reference is None:
        images = torch.cat(batches)
        order = other_images(len(images), seed)
    else:
        images = torch.cat(reference)
        draws = torch.Generator().manual_seed(seed)
        rounds = -(-sum(sizes) // len(images))
        orders = [torch.randperm(len(images), generator=draws) for _ in range(rounds)]
        order = torch.cat(orders)[: sum(sizes)]
    return (each(batch) for batch in images[order].split(sizes))


def other_images(count: int, seed: int) -> Tensor:
    """For each image another one: the next in a random cycle through all of them."""
    expect(count > 1, "two images or more, to put in another's by='resample'", count)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return torch.empty_like(order).scatter_(0, order, order.roll(-1))


def outputs(model: nn.Module, names: Sequence[str], images: Tensor) -> dict[str, Tensor]:
    """What the model gives under each name."""
    with evaluating(model), record(model, *names, detach=True) as seen:
        model(images)
    return {name: tensors_in(seen[name])[0] for name in names}
