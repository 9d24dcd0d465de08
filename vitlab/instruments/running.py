"""Running models on many images: in evaluation mode, batch by batch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from threading import RLock

import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor, nn

# What a model reads: one batch of images, or batches of images of one size.
Images = Shaped[Tensor, "batch channels height width"] | Iterable[Tensor]

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
    """The first batch, to look at, and all of them, to go through once.

    Images that are in batches already stay so. On the way every batch is checked: one image with
    numbers that are not finite would spoil every mean.
    """
    if batch_size < 1:
        raise ValueError(f"expected a batch_size of at least 1: got {batch_size}")
    rest = iter(images.split(batch_size) if isinstance(images, Tensor) else images)
    first = next(rest, None)
    if first is None or not len(first):
        raise ValueError("expected images [batch, channels, height, width]: got none")

    def checked() -> Iterator[Tensor]:
        for batch in chain([first], rest):
            if batch.ndim != 4 or batch.shape[1:] != first.shape[1:]:
                raise ValueError(
                    "expected images [batch, channels, height, width], all of one size: "
                    f"got {list(first.shape)} and {list(batch.shape)}"
                )
            if not batch.isfinite().all():
                raise ValueError("expected images of finite numbers: got some that are not")
            yield batch

    return first, checked()


def leaf(images: Tensor) -> Tensor:
    """A copy of a batch of images, to differentiate with respect to."""
    if not images.is_floating_point():
        raise TypeError(f"expected images of floating numbers: got {images.dtype}")
    return images.detach().clone().requires_grad_()


def with_classes(
    stream: Iterable[Tensor], classes: Tensor | None
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Pairs batches of images with the classes of each, ``[batch]``, where classes are given."""
    if classes is not None and (classes.is_floating_point() or classes.dtype == torch.bool):
        raise TypeError(f"expected numbers of classes, such as int64: got {classes.dtype}")
    count = 0
    for batch in stream:
        yield batch, None if classes is None else classes[count : count + len(batch)]
        count += len(batch)
    if classes is not None and len(classes) != count:
        raise ValueError(f"expected a class for each image: got {len(classes)} for {count}")


def chosen(given: Tensor | None, logits: Float[Tensor, "batch classes"]) -> Int64[Tensor, "batch"]:
    """The classes that were given, or else those of the largest logits."""
    if given is None:
        return logits.argmax(1)
    count = logits.shape[1]
    if given.shape != logits.shape[:1] or not 0 <= given.min() <= given.max() < count:
        raise ValueError(
            f"expected a class below {count} for each of {len(logits)} images: got {given.tolist()}"
        )
    return given.to(logits.device, torch.int64)
