"""What attention computes inside chosen modules of a model, passed on to be kept or replaced."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from minivit.hooks import after, before

# What is told of attention, in the order in which it is computed.
KINDS = ("queries", "keys", "values", "scores", "weights", "heads")
Told = Float[Tensor, "batch heads rows columns"]

NO_SOFTMAX = (
    "queries or keys of {!r} were replaced in a product that no softmax followed: they can be "
    "recorded there, or choose the model's sdpa attention"
)


@dataclass
class Inside:
    """A module in which attention is computed, and what is wanted of it."""

    module: nn.Module
    kinds: set[str] = field(default_factory=set)
    one_of_many: bool = True  # matched by wildcards alone, of which the innermost is told


@dataclass
class Running:
    """A module that runs, and what has been seen of its attention."""

    inside: Inside
    shape: torch.Size | None = None  # of its attention's scores
    again: bool = False  # what was taken for its attention before was none
    certain: bool = False  # a product gave the scores
    # Queries or keys that were replaced, before it is seen what their product is for.
    changed: set[str] = field(default_factory=set)


class AttentionListener:
    """Passes what attention computes inside chosen modules to ``keep``, in a block of
    ``listening``.

    ``keep`` gets a name, such as ``"blocks.0.attention.weights"``, and a tensor. What it returns
    takes the tensor's place, unless it is None. A listener that only watches is told what the
    others leave.
    """

    def __init__(self, keep: Callable[[str, Told], Tensor | None], *, watches: bool = True) -> None:
        self.keep = keep
        self.watches = watches
        self.running: dict[str, Running] = {}  # by name, outermost first
        # By name, the first softmax in which heads and images cannot be told apart.
        self.others: dict[str, torch.Size] = {}

    @contextmanager
    def inside(self, name: str, at: Inside) -> Iterator[None]:
        """Listens inside a module, and calls what is wanted of it ``name.kind``."""

        def begin(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.running[name] = Running(at)

        def end(module: nn.Module, args: Any, output: Any) -> None:
            run = self.running.pop(name, None)
            if run and run.changed and output is not None:
                raise RuntimeError(NO_SOFTMAX.format(name))

        with before(at.module, begin), after(at.module, end, always=True):
            yield

    def told(self) -> dict[str, Running]:
        """The running modules that are told: those named, and the innermost of those matched."""
        matched = [name for name, run in self.running.items() if run.inside.one_of_many]
        parts = [n for n in matched if not isinstance(self.running[n].inside.module, nn.Softmax)]
        innermost = (parts or matched)[-1:]
        return {
            name: run
            for name, run in self.running.items()
            if not run.inside.one_of_many or name in innermost
        }

    def begins(self, shape: torch.Size, certain: bool) -> bool:
        """Whether a softmax is the attention of the modules that are told.

        Where a product gave its scores it is, and one of another shape that had none is a gate.
        """
        for name, run in self.told().items():
            gate = run.shape not in (None, shape) and run.certain != certain
            if gate and run.certain:
                return False
            if run.shape is not None and not (gate and self.watches):
                raise RuntimeError(
                    f"attention was computed more than once for {name!r} in one call: name a "
                    "smaller module with one attention in it, if there is one (two in the same "
                    "module, as in differential attention, have no names)"
                )
            run.again, run.shape, run.certain = run.shape is not None, shape, certain
        return True

    def wants(self, kind: str) -> bool:
        return any(kind in run.inside.kinds for run in self.told().values())

    def change(self, kind: str, tensor: Told) -> Tensor:
        """Lets a listener that replaces have queries or keys, before a softmax has followed."""
        if self.watches:
            return tensor
        for name, run in self.told().items():
            if kind in run.changed:
                raise RuntimeError(NO_SOFTMAX.format(name))
            run.changed.add(kind)
        return self.show(kind, tensor)

    def confirm(self, recorded: dict[str, Told]) -> None:
        """Says that queries and keys, as they are recorded, were those of the attention."""
        for run in self.told().values():
            run.changed.clear()
        if self.watches:
            for kind, tensor in recorded.items():
                self.show(kind, tensor)

    def show(self, kind: str, tensor: Told) -> Tensor:
        """Keeps a tensor for each module told, and gives the one that the model continues with."""
        for name, run in self.told().items():
            if kind in run.inside.kinds and (run.shape or run.changed):
                kept = self.keep(f"{name}.{kind}" if name else kind, tensor)
                tensor = tensor if kept is None else kept
        return tensor
