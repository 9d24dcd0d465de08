"""What is said of an architecture, for its instruments to be checked by hand."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Patches:
    """The patches among the tokens of an attention, in reading order."""

    grid: tuple[int, int]
    first: int = 1  # index of the first; class and register tokens stand before it
    step: tuple[float, float] = (8, 8)  # pixels from one to the next

    @property
    def where(self) -> range:
        return range(self.first, self.first + prod(self.grid))


@dataclass(frozen=True)
class Tried:
    """An architecture, small, and what its author says of it. Names are those of its modules."""

    make: Callable[[], nn.Module]
    weights: str = "*.attn.weights"  # the attention, as ``record`` is told
    size: tuple[int, int] = (32, 32)
    # By the number of tokens; or, for maps, by their rows and columns.
    grids: Mapping[int, Patches] = field(default_factory=lambda: {17: Patches((4, 4))})
    give: tuple[int, int] | None = None  # the grid that a user must give
    plain: bool = True  # attention is softmax(q kᵀ / √d) of projections, and nothing else
    others: tuple[int, ...] = ()  # the softmaxes that are not in ``weights``, in the order they run
    blocks: tuple[str, ...] = ("blocks.0", "blocks.1")
    stream: tuple[str, ...] = ("blocks.0", "blocks.0.norm2", "blocks.1", "blocks.1.norm2", "norm")
    branches: int = 4
    # Patterns of the modules that branches are named after, and what they end in, where that is
    # neither these nor a factor of what they give.
    ends: Mapping[str, str] = field(default_factory=dict)
    end: Callable[[Any, Tensor], Tensor] | None = None  # from the last block's tokens to logits
    answer: Callable[[Any], Any] = lambda output: getattr(output, "logits", output)
    positions: Callable[[Any], Tensor] | None = None  # [rows, columns, dim]
    channels_last: bool = False  # maps are [batch, rows, columns, channels]

    def end_of(self, branch: str) -> str:
        for pattern, end in self.ends.items():
            branch = re.sub(f"{pattern}$", end, branch)
        return branch

    def patches(self, tokens: int) -> Patches:
        return self.grids[tokens]

    def to_map(self, x: Tensor) -> Tensor:
        """``[batch, dim, rows, columns]``."""
        if x.ndim == 4:
            return x.movedim(-1, 1) if self.channels_last else x
        patches = self.grids[x.shape[1]]
        return x[:, patches.where].mT.unflatten(2, patches.grid)
