"""How much a model needs each part: heads and branches switched off, one at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float64, Integer
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.analysis.attentions import attentions
from minivit.analysis.residuals import branches
from minivit.analysis.running import Images, batches, chosen, evaluating, with_classes
from minivit.recording.attention import AttentionListener
from minivit.recording.calls import logits
from minivit.recording.hooks import after


@dataclass(frozen=True, eq=False)
class Importance:
    """Loss and accuracy of a model without each of its parts, and of the whole."""

    names: tuple[str, ...]  # of blocks or branches, in the order they run
    loss: Float64[Tensor, "names *heads"]  # cross-entropy
    accuracy: Float64[Tensor, "names *heads"]
    whole_loss: float
    whole_accuracy: float


def head_importance(
    model: nn.Module,
    images: Images,
    labels: Integer[Tensor, "batch"] | None = None,
    *,
    batch_size: int = 64,
) -> Importance:
    """Switches every attention head off, one at a time, after Michel et al. (2019).

    The attention weights of a head that is off are zero. The result is ``[blocks, heads]``, NaN
    where a block has fewer heads than others. The model is any classifier with attention, of
    minivit, torchvision, timm or Hugging Face. Labels default to what the whole model predicts.
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
    images: Images,
    labels: Integer[Tensor, "batch"] | None = None,
    *,
    batch_size: int = 64,
) -> Importance:
    """Switches every branch off, one at a time, so that only the skip remains.

    Branches are the sub-layers with a residual connection around them, each attention and each MLP,
    found by :func:`~minivit.analysis.residuals.residuals`. In minivit's own models this is what
    :func:`~minivit.surgery.remove` does to a single block.
    """
    first, stream = batches(images, batch_size)
    names = branches(model, first)
    parts = [partial(_without_branch, model, name) for name in names]
    whole, without = _scores(model, stream, labels, parts)
    return Importance(tuple(names), *without, *whole.tolist())


class _HeadOff(AttentionListener):
    """Sets the attention weights of one head to zero in place."""

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
) -> tuple[Float64[Tensor, "2"], Float64[Tensor, "2 parts"]]:
    """Loss and accuracy of the whole model, and without each part."""
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
