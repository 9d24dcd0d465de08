"""Which tokens come from which patches of a picture, found by changing the picture."""

import torch
from torch import Tensor

from minivit.analysis.attentions import Attention, Watch
from minivit.analysis.lattice import Grid

SEEDS = 27182818, 31415926  # of pictures that nobody else has


def noise_like(images: Tensor, seed: int = SEEDS[0]) -> Tensor:
    """A picture of the size of the first, of random pixels."""
    noise = torch.randn(images[:1].shape, generator=torch.Generator().manual_seed(seed))
    return noise.to(images)


def changed_tokens(one: Attention, other: Attention) -> list[int]:
    """Which of the tokens of one picture are others in another."""
    if one.tokens is None or other.tokens is None or _between_channels(one, other):
        raise ValueError(
            f"expected attention between the tokens of {one.name!r}, which reads {one.read}: got "
            f"{list(one.shape)}, between something else, such as channels"
        )
    return (one.tokens != other.tokens).any(1).nonzero().flatten().tolist()


def _between_channels(one: Attention, other: Attention) -> bool:
    """Whether weights that may be between channels, a head having as many, are not between tokens.

    Between tokens that are the same in two pictures attention is the same, but for a factor.
    """
    a, b, x, y = one.weights, other.weights, one.tokens, other.tokens
    if a is None or b is None or x is None or y is None or x.shape[1] != one.heads * len(x):
        return False
    same = (x == y).all(1)
    a, b = (w[..., same, :][..., same].double() for w in (a, b))
    a, b = (w / w.sum(-1, keepdim=True) for w in (a, b))
    return not torch.allclose(a, b, rtol=1e-2, atol=1e-4, equal_nan=True)


def in_reading_order(
    watch: Watch, noise: Tensor, base: Attention, grid: Grid, where: list[int]
) -> list[int]:
    """Which of the tokens ``where`` is which patch, found by changing some patches of a picture.

    Patches that have bit 0 set in their number are changed, then those with bit 1, and so on: the
    bits with which a token changes are its number. Where patches overlap it has bits of its
    neighbours too, and at least its own.

    Raises:
        ValueError: Some token has not even its own.
    """
    (y, x), count = watch.lattice(grid), grid[0] * grid[1]
    rows, columns = (
        ((torch.arange(side) + 0.5 - start) / step + 0.5).floor().clamp(0, n - 1).long()
        for side, (start, step), n in zip(noise.shape[2:], (y, x), grid, strict=True)
    )
    number = (rows[:, None] * grid[1] + columns).to(noise.device)  # [height, width], the pixel's
    found = [0] * count
    for bit in range((count - 1).bit_length()):
        pixels = torch.where(number >> bit & 1 == 1, noise_like(noise, SEEDS[1]), noise)
        (seen,) = watch.look(pixels, first=True)
        changed = set(changed_tokens(base, seen))
        found = [n | (token in changed) << bit for n, token in zip(found, where, strict=True)]
    if sorted(found) == list(range(count)):
        return [token for _, token in sorted(zip(found, where, strict=True))]
    if any(n & i != i for i, n in enumerate(found)):
        raise ValueError(
            f"expected the {grid[0]} x {grid[1]} patches of {base.name!r} in reading order, row by "
            "row: its tokens come from other places"
        )
    return where
