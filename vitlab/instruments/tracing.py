"""Which tokens come from which patches of an image, found by changing the image."""

import torch
from jaxtyping import Float
from torch import Tensor

from vitlab.instruments.attentions import Attention, Watch
from vitlab.instruments.grids import Grid
from vitlab.instruments.running import expect

SEEDS = 27182818, 31415926  # of images that nobody else has


def noise_like(
    images: Float[Tensor, "batch channels height width"], seed: int = SEEDS[0]
) -> Float[Tensor, "1 channels height width"]:
    """One image of random pixels."""
    noise = torch.randn(images[:1].shape, generator=torch.Generator().manual_seed(seed))
    return noise.to(images)


def changed_tokens(one: Attention, other: Attention) -> list[int]:
    """Which tokens differ between two images."""
    if one.tokens is None or other.tokens is None or _between_channels(one, other):
        raise ValueError(
            f"expected attention between the tokens of {one.name!r}, which reads {one.read}: got "
            f"{list(one.shape)}, between something else, such as channels"
        )
    return (one.tokens != other.tokens).any(1).nonzero().flatten().tolist()


def _between_channels(one: Attention, other: Attention) -> bool:
    """Whether attention between channels differs for tokens that are the same in two images."""
    a, b = one.weights, other.weights
    x, y = one.tokens, other.tokens
    if a is None or b is None or x is None or y is None or x.shape[1] != one.heads * len(x):
        return False
    same = (x == y).all(1)
    a, b = (w[..., same, :][..., same].double() for w in (a, b))
    a, b = (w / w.sum(-1, keepdim=True) for w in (a, b))
    return not torch.allclose(a, b, rtol=1e-2, atol=1e-4, equal_nan=True)


def in_reading_order(
    watch: Watch, noise: Tensor, base: Attention, grid: Grid, where: list[int]
) -> list[int]:
    """Sorts the tokens ``where`` by their patches, found by changing some patches of an image.

    Patches whose number has bit 0 set are changed, then bit 1, and so on: the bits with which a
    token changes spell the number of its patch, where patches overlap its neighbours' too.
    """
    y, x = watch.centres(grid)
    count = grid[0] * grid[1]
    rows, columns = (
        ((torch.arange(side) + 0.5 - start) / step + 0.5).floor().clamp(0, n - 1).long()
        for side, (start, step), n in zip(noise.shape[2:], (y, x), grid, strict=True)
    )
    number = (rows[:, None] * grid[1] + columns).to(noise.device)  # [height, width], the pixel's
    numbers = [0] * count
    for bit in range((count - 1).bit_length()):
        pixels = torch.where(number >> bit & 1 == 1, noise_like(noise, SEEDS[1]), noise)
        (attention,) = watch.look(pixels, first=True)
        changed = set(changed_tokens(base, attention))
        numbers = [n | (token in changed) << bit for n, token in zip(numbers, where, strict=True)]
    if sorted(numbers) == list(range(count)):
        return [token for _, token in sorted(zip(numbers, where, strict=True))]
    in_order = all(n & i == i for i, n in enumerate(numbers))
    what = f"the {grid[0]} x {grid[1]} patches of {base.name!r} in reading order, row by row"
    expect(in_order, what, "tokens that come from other positions")
    return where
