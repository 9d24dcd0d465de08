"""Parts of a model switched off, and what takes their place: zeros, a mean, another image's."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.hooks import before
from minivit.recording import record, tensors_in
from minivit.replacing import replace
from vitlab.instruments.running import evaluating

By = Literal["zero", "mean", "resample"]


@dataclass(frozen=True)
class Part:
    """What is switched off, by a name for :func:`~minivit.replacing.replace`."""

    name: str
    head: int | None = None  # of attention weights, only this head
    adds: bool = False  # not the output, but what it adds to the input


@contextmanager
def without(model: nn.Module, part: Part, instead: dict[str, Tensor]) -> Iterator[None]:
    """Switches a part off: zeros take its place unless something else does."""

    def off(output: Any) -> Any:
        old = tensors_in(output)[0]
        new = torch.zeros_like(old)
        if part.name in instead:
            new += instead[part.name]
        if part.head is not None:
            new, one = old.clone(), new
            new[:, part.head] = one[:, part.head]
        if part.adds:
            new += read[part.name]
        return tree_map_only(Tensor, lambda t: new if t is old else t, output)

    with _inputs(model, [part]) as read, replace(model, {part.name: off}):
        yield


def stand_ins(
    model: nn.Module,
    batches: list[Tensor],
    parts: Sequence[Part],
    by: By,
    seed: int,
    reference: list[Tensor] | None = None,
) -> Iterator[dict[str, Tensor]]:
    """What stands in for each name while a model runs on each batch: nothing by zero.

    By mean it is the mean over all images, for every token its own; by resample, what the model
    gives for another image. Each image is another's once. With batches of reference images, it is
    their mean, or what the model gives for one of them, all as often as can be.

    Raises:
        ValueError: The model gives no entry for each image; or there are not two images.
    """
    if by == "zero":
        return repeat({})
    alone = given(model, parts, batches[0][:1])
    if by == "mean":
        totals: dict[str, Tensor] = {}
        seen = batches if reference is None else reference
        for batch in seen:
            for name, x in _each(given(model, parts, batch), alone, len(batch)).items():
                totals[name] = totals.get(name, 0) + len(batch) * x.double().mean(0, keepdim=True)
        count = sum(map(len, seen))
        return repeat({name: total / count for name, total in totals.items()})
    sizes = [len(batch) for batch in batches]
    if reference is not None:
        images, wanted = torch.cat(reference), sum(sizes)
        draws = torch.Generator().manual_seed(seed)
        rounds = -(-wanted // len(images))
        order = torch.cat([torch.randperm(len(images), generator=draws) for _ in range(rounds)])
        others = images[order[:wanted]]
    else:
        images = torch.cat(batches)
        if len(images) < 2:
            raise ValueError("by='resample' puts in what is given for another image: expected two")
        others = images[other_images(len(images), seed)]
    return (_each(given(model, parts, batch), alone, len(batch)) for batch in others.split(sizes))


def other_images(count: int, seed: int) -> Tensor:
    """For each image another one: the next in a random cycle through all of them."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return torch.empty_like(order).scatter_(0, order, order.roll(-1))


def given(model: nn.Module, parts: Sequence[Part], images: Tensor) -> dict[str, Tensor]:
    """What the model gives under each part's name, or adds to its input."""
    names = dict.fromkeys(part.name for part in parts)
    with evaluating(model), _inputs(model, parts) as read, record(model, *names, detach=True) as at:
        model(images)
    found = {name: tensors_in(at[name])[0] for name in names}
    return {name: x - read[name] if name in read else x for name, x in found.items()}


def _each(found: dict[str, Tensor], alone: dict[str, Tensor], count: int) -> dict[str, Tensor]:
    """Makes sure that there is one entry for each image, or one for all."""
    for name, x in found.items():
        one = alone[name].shape
        if one[:1] != (1,) or x.shape[1:] != one[1:] or len(x) not in (1, count):
            raise ValueError(
                f"expected {name!r} to give {[count, *one[1:]]} for {count} images, to put in the "
                f"mean or another's: got {list(x.shape)}, and {list(one)} for one image"
            )
    return found


@contextmanager
def _inputs(model: nn.Module, parts: Sequence[Part]) -> Iterator[dict[str, Tensor]]:
    """Collects the inputs of the parts of which only what they add is meant."""
    read: dict[str, Tensor] = {}
    with ExitStack() as stack:
        for part in parts:

            def keep(module: nn.Module, args: Any, kwargs: Any, name: str = part.name) -> None:
                read[name] = tensors_in((args, kwargs))[0].clone()

            if part.adds:
                stack.enter_context(before(model.get_submodule(part.name), keep))
        yield read
