"""Where a model computes attention, and between which tokens, found by watching one call.

Each attention belongs to the block that it runs in, and its tokens are what the block reads.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from minivit.attention import listening
from minivit.hooks import after, before
from minivit.listening import AttentionListener, Inside, Running
from minivit.recording import runnable, tensors_in
from vitlab.calls import Reached
from vitlab.instruments.grids import Centres, Grid, centres_of, maps_of
from vitlab.instruments.running import entered, evaluating, expect


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention of a model, with as many queries as keys, for one image."""

    name: str  # of the block, inside which the attention weights are recorded
    shape: tuple[int, ...]  # of the weights for one image, [1, heads, tokens, tokens]
    tokens: Float[Tensor, "seen dim"]  # before the attention; none where none were seen
    read: list[int]  # shape of the block's input
    maps: tuple[Grid, ...]  # rows and columns of the feature maps before
    weights: Tensor  # of that shape, for the first attention only

    @property
    def heads(self) -> int:
        return self.shape[1]


AXES = "attention weights [images, heads, queries, keys]"


class Watch(AttentionListener):
    """Notes every attention, with the tensors that the modules around it have seen so far."""

    def __init__(self, model: nn.Module, maps: list[Grid], centres: Callable[[Grid], Centres]):
        super().__init__(lambda name, weights: None)
        self.model = model
        self.maps = maps  # filled while the model runs
        self.centres = centres
        self.frames: list[tuple[str, list[Tensor]]] = []  # of the modules that run, outermost first
        self.found: list[Attention] = []
        self.first = False
        self.counts: dict[str, int] = {}  # of the tokens of blocks that attend in windows

    @contextmanager
    def within(self, module: nn.Module, name: str) -> Iterator[None]:
        """Keeps the tensors that a module reads and its parts give, while it runs."""

        def begin(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.running[name] = Running(Inside(module, {"weights"}))
            self.frames.append((name, tensors_in((args, kwargs))))

        def end(module: nn.Module, args: Any, output: Any) -> None:
            self.running.pop(name, None)
            self.frames.pop()
            if self.frames:
                self.frames[-1][1].extend(tensors_in(output))

        with before(module, begin), after(module, end, always=True):
            yield

    def show(self, kind: str, weights: Tensor) -> Tensor:
        if kind != "weights" or weights.shape[-1] != weights.shape[-2]:
            return weights
        if any(run.again for run in self.told().values()):
            self.found.pop()
        depth = self._block()
        name, _ = self.frames[depth]
        met = [tensor for _, tensors in self.frames[depth:] for tensor in tensors]
        tokens = (tokens_of(x, self.counts.get(name, weights.shape[-1])) for x in met)
        seen = next((rows.clone() for rows in tokens if rows is not None), torch.empty(0, 0))
        read = list(met[0].shape) if met else []
        own = weights[:0] if self.found else weights.clone()
        self.found.append(Attention(name, weights.shape, seen, read, tuple(self.maps), own))
        if self.first:
            raise Reached(None)
        return weights

    def _block(self) -> int:
        """Index of the innermost running module that is in a list of modules, or of the last."""
        for depth, (name, _) in reversed(list(enumerate(self.frames))):
            row = self.model.get_submodule(name.rpartition(".")[0])
            if name and isinstance(row, nn.ModuleList | nn.Sequential):
                return depth
        return len(self.frames) - 1

    def look(self, images: Tensor, *, first: bool = False) -> list[Attention]:
        """Every attention of the model on the first image, in the order they run, or the first."""
        for notes in (self.running, self.frames, self.found, self.maps):
            notes.clear()
        self.first = first
        with suppress(Reached):
            self.model(images[:1])
        if not self.found and self.others:
            name, shape = self.others.popitem()  # the innermost
            apart = f"{list(shape)}, in which heads and images cannot be told apart"
            raise ValueError(f"expected {AXES}: the softmax in {name!r} has {apart}")
        if not self.found:
            none = "computes no attention between tokens: there is none to measure"
            raise ValueError(f"{type(self.model).__name__} {none}")
        names = [attention.name for attention in self.found]
        expect(len(set(names)) == len(names), "one attention in a block", names)
        return list(self.found)


@contextmanager
def watching(model: nn.Module, images: Tensor) -> Iterator[Watch]:
    """Watches a model, in evaluation mode, on images of one size."""
    size = (images.shape[-2], images.shape[-1])
    with evaluating(model), maps_of(model) as maps, centres_of(model, size) as centres:
        watch, modules = Watch(model, maps, centres), runnable(model).items()
        with entered(watch.within(module, name) for name, module in modules), listening(watch):
            yield watch


def tokens_of(x: Tensor, count: int) -> Float[Tensor, "tokens dim"] | None:
    """``count`` tokens of one image, if that is what ``x`` holds."""
    if not x.is_floating_point() or x.ndim not in (3, 4):
        return None
    if x.ndim == 3 and x.shape[1] == 1:  # [tokens, 1, dim]
        x = x.transpose(0, 1)
    elif x.ndim == 4 and x.shape[2] * x.shape[3] == count:  # [1, dim, rows, columns]
        x = x.flatten(2).mT
    elif x.ndim == 4:  # [1, rows, columns, dim]
        x = x.flatten(1, 2)
    return x[0] if x.shape[:2] == (1, count) else None


def attentions(model: nn.Module, images: Tensor) -> list[Attention]:
    """Finds every attention between as many queries as keys that a model computes for one image."""
    with watching(model, images) as watch:
        return watch.look(images)
