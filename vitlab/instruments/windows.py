"""Which tokens attend to each other in each window, found by changing some of them.

Attention in windows, as in Swin (Liu et al., 2021), is recorded as [images * windows, heads, places
in a window, places in a window]. A query depends on one token that the block reads. The tokens
whose number has bit 0 set are changed, then bit 1, and so on: the bits with which a query changes
spell the number of its token.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float64, Int64
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.hooks import before
from minivit.recording import one, part_of, record, tensors_in
from vitlab.instruments.attentions import Attention
from vitlab.instruments.grids import Grid
from vitlab.instruments.running import evaluating, expect
from vitlab.instruments.tracing import SEEDS, noise_like


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of one attention, which cover a grid of tokens."""

    grid: Grid
    tokens: Int64[Tensor, "windows places"]  # index of each; -1 where windows are padded


def windows_of(
    model: nn.Module, images: Tensor, found: list[Attention], first: Grid
) -> dict[str, Windows]:
    """The windows of every attention, by the name of its block.

    ``first`` is the grid of the first block. ValueError where the queries are not those of a grid
    of tokens, each in one window.
    """
    pair = torch.cat([noise_like(images, seed) for seed in SEEDS])
    read, plain = _queries(model, pair, dict.fromkeys(a.name for a in found))
    windows: dict[str, Windows] = {}
    numbered = {name: _numbered(x, first) for name, x in read.items() if len(x) == len(pair)}
    while left := {name: rest.pop(0) for name, rest in numbered.items() if rest}:
        codes = {
            name: torch.zeros_like(plain[name][:, 0, :, 0], dtype=torch.int64) for name in left
        }
        for bit in range(max(int(numbers.max()) for _, numbers in left.values()).bit_length()):
            new = {  # what the blocks read, changed in the first image
                name: torch.stack([torch.where(numbers >> bit & 1 == 1, x[1], x[0]), x[1]])
                for name, (_, numbers) in left.items()
                for x in [read[name]]
            }
            _, queries = _queries(model, pair, new)
            for name, q in queries.items():
                codes[name] |= (q != plain[name]).any(1).any(-1).long() << bit
        for name, (grid, numbers) in left.items():
            tokens, others = codes[name].cpu().chunk(2)
            inside = tokens[tokens > 0].sort().values
            if not others.any() and torch.equal(inside, numbers.flatten().cpu()):
                windows[name] = Windows(grid, tokens - 1)
                numbered[name].clear()
    for attention in found:
        if attention.name not in windows:
            raise ValueError(
                f"expected a grid of tokens, each in one window: got {list(attention.shape)} in "
                f"{attention.name!r}, which reads {attention.read}"
            )
    return windows


def kept(
    windows: Int64[Tensor, "windows places"], weights: Float64[Tensor, "groups ... places"]
) -> Float64[Tensor, "groups ... places"]:
    """The weights without those on padding."""
    real = (windows >= 0).to(weights).repeat(len(weights) // len(windows), 1)
    return torch.einsum("b ... j, b j -> b ... j", weights, real)


def averaged(
    windows: Int64[Tensor, "windows places"],
    weights: Float64[Tensor, "groups places places"],
    rows: Float64[Tensor, "batch tokens more"],
) -> Float64[Tensor, "batch tokens more"]:
    """For each token a weighted sum of the rows of its window's tokens."""
    sums = weights.unflatten(0, (-1, len(windows))) @ rows[:, windows]
    real = windows >= 0
    return torch.zeros_like(rows).index_copy(1, windows[real], sums[:, real])


def merging(before: Grid, after: Grid) -> Float64[Tensor, "after before"]:
    """How the tokens of a grid become those of a smaller one; those that are merged count alike.

    ValueError where the rows and columns do not become fewer by one factor.
    """
    side = -(-before[0] // after[0])
    each = torch.eye(before[0] * before[1], dtype=torch.float64).unflatten(1, before)
    merged = F.avg_pool2d(each, side, ceil_mode=True)
    expect(merged.shape[1:] == after, f"{before} patches merged {side} x {side}", after)
    return merged.flatten(1).mT


def _numbered(x: Tensor, first: Grid) -> list[tuple[Grid, Tensor]]:
    """What may be the grid of the tokens in x, with their numbers, from 1, along its axes."""
    (rows, columns), shape = first, x.shape[1:]
    if len(shape) == 3:  # [rows, columns, dim] or [dim, rows, columns]
        grids = [((shape[0], shape[1]), [*shape[:2], 1]), ((shape[1], shape[2]), [1, *shape[1:]])]
    else:  # [tokens, dim]
        halved = [(-(-rows // 2**k), -(-columns // 2**k)) for k in range(8)]
        grids = [(grid, [len(x[0]), 1]) for grid in halved if grid[0] * grid[1] == len(x[0])][:1]
    return [
        (grid, torch.arange(1, grid[0] * grid[1] + 1, device=x.device).view(along))
        for grid, along in grids
    ]


def _queries(
    model: nn.Module, pair: Tensor, put: Mapping[str, Tensor | None]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What named blocks read in one call, and their queries if they read what is put there."""
    read: dict[str, Tensor] = {}

    def begin(name: str, args: Any, kwargs: Any) -> Any:
        x = read[name] = next(x for x in tensors_in((args, kwargs)) if x.is_floating_point())
        new = x if put[name] is None else put[name]
        return tree_map_only(Tensor, lambda t: new if t is x else t, (args, kwargs))

    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        for name in put:
            hook = before(one(model, name), lambda _, *call, name=name: begin(name, *call))
            stack.enter_context(hook)
        seen = stack.enter_context(record(model, *(part_of(name, "queries") for name in put)))
        model(pair)
    return read, {name: seen[part_of(name, "queries")] for name in put}
