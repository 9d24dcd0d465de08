"""Models run on many pictures: in evaluation mode, batch after batch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Keeps a model in its mode of evaluation, without gradients; all comes back as it was."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


def batches(images: Tensor | Iterable[Tensor], batch_size: int) -> tuple[Tensor, Iterator[Tensor]]:
    """Cuts images into batches; a series of batches stays as it is.

    Args:
        images: ``[n, channels, height, width]``, or batches of such, all of one size.
        batch_size: Images at a time, where they are not in batches already.

    Returns:
        The first batch, to look at, and all of them, to go through once.

    Raises:
        ValueError: There are no images, or none at a time; or, on the way, other shapes.
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
            yield batch

    return first, checked()


def logits(model: nn.Module, images: Tensor) -> Tensor:
    """Gives a classifier's logits, ``[batch, classes]``, also where it wraps them in an object.

    Raises:
        ValueError: The model gives no logits.
    """
    output = model(images)
    found = getattr(output, "logits", output)  # as Hugging Face's classifiers have them
    if not isinstance(found, Tensor) or found.ndim != 2 or len(found) != len(images):
        got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(f"expected logits [batch, classes] of {type(model).__name__}: got {got}")
    return found
