"""How much a model misses a part: heads and branches switched off, one at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.analysis.attentions import attentions
from minivit.analysis.residuals import branches
from minivit.analysis.running import batches, chosen, evaluating, with_classes
from minivit.recording.attention import AttentionListener
from minivit.recording.calls import logits
from minivit.recording.hooks import after


@dataclass(frozen=True, eq=False)
class Importance:
    """How a model does without each of its parts, and how the whole does."""

    names: tuple[str, ...]  # of blocks or branches, in the order in which they run
    loss: Tensor  # [names, heads] or [names]: -log of the probability of the picture's class
    accuracy: Tensor  # the same shape: share of pictures that get their class
    whole_loss: float
    whole_accuracy: float


def head_importance(
    model: nn.Module,
    images: Tensor | Iterable[Tensor],
    labels: Tensor | None = None,
    *,
    batch_size: int = 64,
) -> Importance:
    """Switches every attention head off, one at a time, after Michel et al. (2019).

    A head that is off adds nothing to what its attention gives: its weights are zero.

    Args:
        model: A classifier with attention between tokens: minivit's, torchvision's, timm's, Hugging
            Face's. It is used in its mode of evaluation, and comes back as it was.
        images: The model's input, ``[n, channels, height, width]``, or batches of such, all of one
            size. Memory is that of one batch.
        labels: The pictures' classes, ``[n]``. Default: what the whole model answers.
        batch_size: Images at a time, where they are not in batches already. Default: 64.

    Returns:
        ``[blocks, heads]``, float64 on the CPU; NaN where a block has fewer heads than others.

    Raises:
        TypeError: Labels that are no whole numbers.
        ValueError: No images, or of several sizes, or not finite; not one label for each, or none
            of the model's classes; a model that gives no logits; or no attention between tokens, or
            several in one block.
    """
    first, stream = batches(images, batch_size)
    at = attentions(model, first)
    parts = [
        partial(_without_head, model, attention.name, head)
        for attention in at
        for head in range(attention.heads)
    ]
    whole, without = _scores(model, stream, labels, parts)
    heads = torch.tensor([attention.heads for attention in at])
    there = torch.arange(int(heads.max())) < heads[:, None]  # [blocks, heads]
    table = torch.full((2, *there.shape), torch.nan, dtype=torch.float64)
    table[:, there] = without
    return Importance(tuple(attention.name for attention in at), *table, *whole.tolist())


def branch_importance(
    model: nn.Module,
    images: Tensor | Iterable[Tensor],
    labels: Tensor | None = None,
    *,
    batch_size: int = 64,
) -> Importance:
    """Switches every branch off, one at a time, so that the skip alone goes on.

    Branches are the sub-layers with a residual connection around them: each attention and each MLP
    of a block. They are found by :func:`~minivit.analysis.residuals.residuals`. For minivit's own
    models it is what :func:`~minivit.surgery.remove` does to a single block.

    Args:
        model: A classifier with residual connections, its norms before the branches. It is used in
            its mode of evaluation, and comes back as it was.
        images: As for :func:`head_importance`.
        labels: As for :func:`head_importance`.
        batch_size: As for :func:`head_importance`.

    Returns:
        ``[branches]``, float64 on the CPU.

    Raises:
        TypeError, ValueError: No residual connections; otherwise as for :func:`head_importance`.
    """
    first, stream = batches(images, batch_size)
    names = branches(model, first)
    parts = [partial(_without_branch, model, name) for name in names]
    whole, without = _scores(model, stream, labels, parts)
    return Importance(tuple(names), *without, *whole.tolist())


class _HeadOff(AttentionListener):
    """Makes the weights of one head zero, and the model goes on with them."""

    def __init__(self, head: int) -> None:
        super().__init__(lambda name, weights: None)
        self.head = head

    def show(self, weights: Tensor) -> None:
        weights[:, self.head] = 0


@contextmanager
def _without_head(model: nn.Module, block: str, head: int) -> Iterator[None]:
    listener = _HeadOff(head)
    with listener.inside(model.get_submodule(block), block), listener:
        yield


@contextmanager
def _without_branch(model: nn.Module, name: str) -> Iterator[None]:
    def off(module: nn.Module, args: Any, output: Any) -> Any:
        return tree_map_only(Tensor, torch.zeros_like, output)

    with after(model.get_submodule(name), off):
        yield


def _scores(
    model: nn.Module,
    stream: Iterable[Tensor],
    labels: Tensor | None,
    parts: Sequence[Callable[[], AbstractContextManager[None]]],
) -> tuple[Tensor, Tensor]:
    """Loss and accuracy of the whole model, ``[2]``, and without each part, ``[2, parts]``."""
    sums = torch.zeros(2, 1 + len(parts), dtype=torch.float64)
    count = 0
    for batch, some in with_classes(stream, labels):
        with evaluating(model):
            found = [logits(model, batch)]
            true = chosen(some, found[0]).cpu()
            for part in parts:
                with part():
                    found.append(logits(model, batch))
        logs = torch.stack(found).double().log_softmax(-1).cpu()  # [1 + parts, b, classes]
        sums[0] -= logs[:, torch.arange(len(batch)), true].sum(1)
        sums[1] += (logs.argmax(-1) == true).sum(1)
        count += len(batch)
    return sums[:, 0] / count, sums[:, 1:] / count
