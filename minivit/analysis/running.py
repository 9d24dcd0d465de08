"""Models run on many pictures: in evaluation mode, batch after batch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from operator import index
from threading import RLock

import torch
from torch import Tensor, nn

_lock = RLock()
# By a module's identity: how many blocks keep it in evaluation, and whether it was in training.
_evaluated: dict[int, tuple[int, bool]] = {}


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Keeps a model in its mode of evaluation, without gradients; all comes back as it was.

    It comes back when the last of such blocks ends, where several threads have one on a model.
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


def batches(images: Tensor | Iterable[Tensor], batch_size: int) -> tuple[Tensor, Iterator[Tensor]]:
    """Cuts images into batches; a series of batches stays as it is.

    Args:
        images: ``[n, channels, height, width]``, or batches of such, all of one size.
        batch_size: Images at a time, where they are not in batches already.

    Returns:
        The first batch, to look at, and all of them, to go through once.

    Raises:
        ValueError: There are no images, or none at a time; or, on the way, other shapes, or numbers
            that are not finite: one such picture spoils every mean, and its answer is no class.
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


def rows_and_columns(given: Iterable[int], name: str = "grid") -> tuple[int, int]:
    """Two whole numbers.

    Raises:
        ValueError: They are others; the message calls them ``name``.
    """
    try:
        rows, columns = map(index, given)
    except (TypeError, ValueError):
        raise ValueError(f"expected {name}=(rows, columns): got {given!r}") from None
    return rows, columns


def leaf(images: Tensor) -> Tensor:
    """A copy of a batch of images, to differentiate by.

    Raises:
        TypeError: They have no floating numbers.
    """
    if not images.is_floating_point():
        raise TypeError(f"expected images of floating numbers: got {images.dtype}")
    return images.detach().clone().requires_grad_()


def with_classes(
    stream: Iterable[Tensor], classes: Tensor | None
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Goes through batches of images with the classes of each, ``[batch]``, where there are any.

    Raises:
        TypeError: The classes are no whole numbers.
        ValueError: On the way, there is not one class for each image.
    """
    if classes is not None and (classes.is_floating_point() or classes.dtype == torch.bool):
        raise TypeError(f"expected numbers of classes, such as int64: got {classes.dtype}")
    count = 0
    for batch in stream:
        yield batch, None if classes is None else classes[count : count + len(batch)]
        count += len(batch)
    if classes is not None and len(classes) != count:
        raise ValueError(f"expected a class for each picture: got {len(classes)} for {count}")


def chosen(given: Tensor | None, found: Tensor) -> Tensor:
    """The classes that were given, or those of the largest logits, int64 ``[batch]``.

    Args:
        given: Whole numbers, ``[batch]``, or none.
        found: Logits, ``[batch, classes]``.

    Raises:
        ValueError: There is not one for each row, or there is no such class.
    """
    if given is None:
        return found.argmax(1)
    count = found.shape[1]
    if given.shape != found.shape[:1] or not 0 <= given.min() <= given.max() < count:
        raise ValueError(
            f"expected a class below {count} for each of {len(found)} pictures: "
            f"got {given.tolist()}"
        )
    return given.to(found.device, torch.int64)
