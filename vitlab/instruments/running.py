"""Running models on many images: in evaluation mode, batch by batch."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from threading import RLock

import torch
from jaxtyping import Int64, Integer, Shaped
from torch import Tensor, nn

from vitlab.calls import expect as expect

# What a model reads: one batch of images, or batches of images of one size.
Images = Shaped[Tensor, "batch channels height width"] | Iterable[Tensor]
Classes = Integer[Tensor, "batch"]  # one for each image, of all batches

_lock = RLock()
# By a module's identity: how many blocks keep it in evaluation, and whether it was in training.
_evaluated: dict[int, tuple[int, bool]] = {}


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Keeps a model in evaluation mode, without gradients, and restores its modes afterwards.

    Where several threads share a model, the last of them to leave restores it.
    """
    modules = list(model.modules())
    with _lock:
        for module in modules:
            blocks, training = _evaluated.get(id(module), (0, module.training))
            _evaluated[id(module)] = blocks + 1, training
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        with _lock:
            for module in modules:
                blocks, training = _evaluated.pop(id(module))
                if blocks > 1:
                    _evaluated[id(module)] = blocks - 1, training
                elif training:
                    module.training = True


def batches(images: Images, batch_size: int) -> tuple[Tensor, Iterator[Tensor]]:
    """The first batch, to look at, and all, to go through once, of one size and finite."""
    rest = iter(images.split(batch_size) if isinstance(images, Tensor) else images)
    first = next(rest, None)
    if first is None or not len(first):
        raise ValueError("expected images [batch, channels, height, width]: got none")

    def checked() -> Iterator[Tensor]:
        for batch in chain([first], rest):
            fits = batch.ndim == 4 and batch.shape[1:] == first.shape[1:]
            got = f"{list(first.shape)} and {list(batch.shape)}"
            expect(fits, "images [batch, channels, height, width] of one size", got)
            expect(batch.isfinite().all(), "images of finite numbers", "some that are not")
            yield batch

    return first, checked()


def with_classes(
    stream: Iterable[Tensor], classes: Tensor | None
) -> Iterator[tuple[Tensor, Callable[[Tensor], Int64[Tensor, "batch"]]]]:
    """Pairs batches with a function from logits to classes: the given ones, or else the largest."""
    count = 0
    for batch in stream:
        given = None if classes is None else classes[count : count + len(batch)]
        yield batch, partial(_chosen, given)
        count += len(batch)
    if classes is not None:
        expect(len(classes) == count, "a class for each image", f"{len(classes)} for {count}")


def _chosen(given: Tensor | None, logits: Tensor) -> Int64[Tensor, "batch"]:
    if given is None:
        return logits.argmax(1)
    count, whole = logits.shape[1], not given.is_floating_point() and given.dtype != torch.bool
    fits = whole and given.shape == logits.shape[:1] and 0 <= given.min() <= given.max() < count
    expect(fits, f"a class below {count} for each of {len(logits)} images", given.tolist())
    return given.to(logits.device, torch.int64)
