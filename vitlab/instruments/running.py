"""Running models on many images: in evaluation mode, batch by batch."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import chain
from threading import RLock
from typing import Any

import torch
from jaxtyping import Int64, Integer, Shaped
from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import tensors_in
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

    Where several threads share a model, the last of them to leave restores it. ValueError where
    what the model gives is not finite; a RuntimeError of its own has a note of what it read.
    """
    read: list[Tensor] = []  # while it runs

    def begin(module: nn.Module, args: Any, kwargs: Any) -> None:
        read[:] = tensors_in((args, kwargs))

    def end(module: nn.Module, args: Any, output: Any) -> None:
        read.clear()
        for t in (t for t in tensors_in(output) if t.is_floating_point()):
            got = "NaN or infinity: its weights hold some, or the images are too large for them"
            fits = (t < torch.inf).all()  # a masked logit may be -inf
            expect(fits, f"{type(model).__name__} to give finite numbers", got)

    modules = list(model.modules())
    with _lock:
        for module in modules:
            blocks, training = _evaluated.get(id(module), (0, module.training))
            _evaluated[id(module)] = blocks + 1, training
        model.eval()
    try:
        with torch.no_grad(), before(model, begin), after(model, end):
            yield
    except RuntimeError as error:
        if read and not hasattr(error, "__notes__"):
            error.add_note(f"{type(model).__name__} had read {list(read[0].shape)}")
        raise
    finally:
        with _lock:
            for module in modules:
                blocks, training = _evaluated.pop(id(module))
                if blocks > 1:
                    _evaluated[id(module)] = blocks - 1, training
                elif training:
                    module.training = True


@contextmanager
def entered(blocks: Iterable[AbstractContextManager[Any]]) -> Iterator[None]:
    """Enters several blocks of code, such as hooks, and leaves them together."""
    with ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block)
        yield


def batches(images: Images, batch_size: int) -> tuple[Tensor, Iterator[Tensor]]:
    """The first batch, to look at, and an iterator over all, which checks sizes and numbers."""
    rest = iter(images.split(batch_size) if isinstance(images, Tensor) else images)
    first = next(rest, None)
    if not isinstance(first, Tensor) or not len(first):
        got = "none" if first is None or isinstance(first, Tensor) else type(first).__name__
        raise ValueError(f"expected images [batch, channels, height, width]: got {got}")

    def checked(batch: Tensor) -> Tensor:
        fits = batch.ndim == 4 and batch.shape[1:] == first.shape[1:]
        got = f"{list(first.shape)} and {list(batch.shape)}"
        expect(fits, "images [batch, channels, height, width] of one size", got)
        expect(batch.isfinite().all(), "images of finite numbers", "some that are not")
        return batch

    return checked(first), map(checked, chain([first], rest))


def with_classes(
    stream: Iterable[Tensor], classes: Tensor | None
) -> Iterator[tuple[Tensor, Callable[[Tensor], Int64[Tensor, "batch"]]]]:
    """Pairs batches with a function from logits to classes: the given ones, or else the largest."""
    count = 0
    for batch in stream:
        given = None if classes is None else classes[count : count + len(batch)]
        yield batch, partial(known, given)
        count += len(batch)
    if classes is not None:
        expect(len(classes) == count, "a class for each image", f"{len(classes)} for {count}")


def known(given: Tensor | None, logits: Tensor) -> Int64[Tensor, "batch"]:
    """The given classes, checked against logits ``[batch, classes]``, or else the largest."""
    if given is None:
        return logits.argmax(1)
    count, whole = logits.shape[1], not given.is_floating_point() and given.dtype != torch.bool
    fits = whole and given.shape == logits.shape[:1] and 0 <= given.min() <= given.max() < count
    expect(fits, f"a class below {count} for each of {len(logits)} images", given.tolist())
    return given.to(logits.device, torch.int64)
