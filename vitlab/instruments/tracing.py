"""Which tokens come from which patches of an image, and attend to each other in which windows.

It is found by changing some: those whose number has bit 0 set, then bit 1, and so on. The bits with
which a token changes spell the number of its patch, and those with which a query changes the number
of the one token that it depends on. Attention in windows, as in Swin (Liu et al., 2021), is
recorded as [images * windows, heads, places in a window, places in a window].
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.hooks import before
from minivit.recording import one, part_of, record, tensors_in
from vitlab.instruments.attentions import Attention, Watch
from vitlab.instruments.grids import Grid
from vitlab.instruments.running import entered, evaluating, expect

SEEDS = 27182818, 31415926  # of images that nobody else has


def noise_like(
    images: Float[Tensor, "batch channels height width"], seed: int = SEEDS[0]
) -> Float[Tensor, "1 channels height width"]:
    """One image of random pixels."""
    noise = torch.randn(images[:1].shape, generator=torch.Generator().manual_seed(seed))
    return noise.to(images)


def changed_tokens(base: Attention, other: Attention) -> list[int]:
    """Which tokens differ between two images."""
    x, y, a, b = base.tokens, other.tokens, base.weights, other.weights
    between = len(x) > 0 and len(y) > 0
    if between and len(a) and x.shape[1] == base.heads * len(x):
        # It may be between channels: then it differs for tokens that are the same in both images.
        same = (x == y).all(1)
        a, b = (w[..., same, :][..., same].double() for w in (a, b))
        a, b = (w / w.sum(-1, keepdim=True) for w in (a, b))
        between = torch.allclose(a, b, rtol=1e-2, atol=1e-4, equal_nan=True)
    what = f"attention between the tokens of {base.name!r}, which reads {base.read}"
    expect(between, what, f"{list(base.shape)}, between something else, such as channels")
    return (x != y).any(1).nonzero().flatten().tolist()


def in_reading_order(
    watch: Watch, noise: Tensor, base: Attention, grid: Grid, where: list[int]
) -> list[int]:
    """Sorts tokens by their patches; where these overlap, a token has its neighbours' bits, too."""
    count = grid[0] * grid[1]
    rows, columns = (
        ((torch.arange(side) + 0.5 - start) / step + 0.5).floor().clamp(0, n - 1).long()
        for side, (start, step), n in zip(noise.shape[2:], watch.centres(grid), grid, strict=True)
    )
    number = (rows[:, None] * grid[1] + columns).to(noise.device)  # [height, width], the pixel's
    spelled = torch.zeros(len(base.tokens), dtype=torch.int64)
    for bit in range((count - 1).bit_length()):
        pixels = torch.where(number >> bit & 1 == 1, noise_like(noise, SEEDS[1]), noise)
        (attention,) = watch.look(pixels, first=True)
        spelled[changed_tokens(base, attention)] |= 1 << bit
    numbers = spelled[where].tolist()
    if sorted(numbers) == list(range(count)):
        return [token for _, token in sorted(zip(numbers, where, strict=True))]
    in_order = all(n & i == i for i, n in enumerate(numbers))
    what = f"the {grid[0]} x {grid[1]} patches of {base.name!r} in reading order, row by row"
    expect(in_order, what, "tokens that come from other positions")
    return where


def windows_of(
    model: nn.Module, images: Tensor, found: list[Attention], first: Grid
) -> dict[str, tuple[Grid, Int64[Tensor, "windows places"]]]:
    """Each attention's grid of tokens, by the name of its block, and the windows that cover it: the
    index of each token; -1 where windows are padded.

    ``first`` is the grid of the first block. ValueError where the queries are not those of a grid
    of tokens, each in one window.
    """
    pair = torch.cat([noise_like(images, seed) for seed in SEEDS])
    read, plain = _queries(model, pair, dict.fromkeys(a.name for a in found))
    windows = {}
    numbered = {name: _numbered(x, first) for name, x in read.items() if len(x) == len(pair)}
    while left := {name: rest.pop(0) for name, rest in numbered.items() if rest}:
        codes = {name: torch.zeros_like(plain[name][:, 0, :, 0]).long() for name in left}
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
                windows[name] = grid, tokens - 1
                numbered[name].clear()
    for a in found:
        got = f"{list(a.shape)} in {a.name!r}, which reads {a.read}"
        expect(a.name in windows, "a grid of tokens, each in one window", got)
    return windows


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

    def begin(name: str, module: nn.Module, args: Any, kwargs: Any) -> Any:
        x = read[name] = next(x for x in tensors_in((args, kwargs)) if x.is_floating_point())
        new = x if put[name] is None else put[name]
        return tree_map_only(Tensor, lambda t: new if t is x else t, (args, kwargs))

    queries = {name: part_of(name, "queries") for name in put}
    hooks = (before(one(model, name), partial(begin, name)) for name in put)
    with evaluating(model), entered(hooks), record(model, *queries.values()) as seen:
        model(pair)
    return read, {name: seen[part] for name, part in queries.items()}
