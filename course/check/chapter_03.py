"""Chapter 3: tables of positions, and positions that act on scores."""

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, Draw, NotYet, close
from course.check.exercise import exercise


@exercise(seed=0)
def add_positions(attempt: Attempt, normal: Draw) -> None:
    """tokens [batch, 1 + patches, dim], table [patches, dim] -> as tokens."""
    batch, patches, dim = 2, 5, 3
    tokens, table = normal(batch, 1 + patches, dim), normal(patches, dim)
    try:
        result = attempt(tokens, table, shape=dict(batch=batch, tokens=1 + patches, dim=dim))
    except NotYet as reason:
        if f"shape {[batch, patches, dim]}" in str(reason):
            raise NotYet(f"{reason} The class token is missing.") from reason
        if "must match" not in str(reason):
            raise
        raise NotYet(
            f"The table has {patches} rows, one for each patch, and is added to {1 + patches} "
            "tokens. Leave the class token out of the sum, or give it a row of zeros."
        ) from reason
    added = result - tokens
    attempt.expect(
        not close(added[:, :-1], table.expand(batch, patches, dim)),
        "The first row of the table goes to the class token and the last token gets nothing. The "
        "patches begin at token 1.",
    )
    at_end = close(result[:, -1], tokens[:, 0])
    attempt.expect(not at_end, "The class token is put at the end. It comes first.")
    said = "The class token has changed. It has no position on the grid and should stay as it is."
    attempt.expect(not added[:, 0].any(), said)
    attempt.expect(added.any(), "The tokens come back unchanged. Is the sum returned?")
    outcomes = {
        table.expand(batch, patches, dim): "Token 1 + t should get row t of the table, in every "
        "image of the batch.",
        torch.stack([table, 0 * table]): "Only the first image of the batch gets positions.",
        -table.expand(batch, patches, dim): "The table is subtracted.",
    }
    attempt.expect_close(added[:, 1:], outcomes)


def sincos(places: Tensor, dim: int) -> Tensor:
    """The table of the chapter, at any positions."""
    angles = places[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


@exercise("n, dim")
def move_by(attempt: Attempt) -> None:
    """p [n, dim], rows of a sin-cos table; steps -> the rows that many positions on."""
    n, dim = 5, 6
    places = torch.tensor([7.0, 0.0, 3.0, 12.0, 4.0])
    p = sincos(places, dim)
    outcomes = {
        p: "With steps = 0 every row should come back as it is.",
        torch.cat([p[:, 0::2], p[:, 1::2]], 1): "With steps = 0 the numbers come back in another "
        "order. Sine and cosine of pair i stand at 2i and 2i + 1.",
        p[:, [1, 0, 3, 2, 5, 4]]: "With steps = 0 sine and cosine of each pair come back "
        "exchanged.",
    }
    attempt.expect_close(attempt(p, 0), outcomes)
    moved = attempt(p, 2, shape=dict(n=n, dim=dim))
    attempt.expect(
        (moved.unflatten(1, (-1, 2)).norm(dim=-1) - 1).abs().max() < 1e-4,
        "After the move the squares of a pair no longer sum to one. Check the signs: sin(a + b) = "
        "sin a cos b + cos a sin b, cos(a + b) = cos a cos b - sin a sin b.",
    )
    back = torch.full((n,), -2.0)  # a pair holds sine, then cosine, which turn the other way
    outcomes = {
        sincos(places + 2, dim): "With steps = 2 the rows are wrong.",
        sincos(places - 2, dim): "The rows move backwards.",
        turn(p, back, base=1.0): "All pairs turn by the angle of the first. Pair i turns by "
        "omega_i * steps.",
        turn(p, back, width=2 * dim): "The rates are off: the exponent is -2i / dim with i = 0, 1, "
        "..., one for each pair.",
        p.roll(-2, 0): "The rows are shifted in the tensor. They are in any order: turn each by "
        "itself.",
    }
    attempt.expect_close(moved, outcomes)
    for steps in (-3, 1.5, 40):
        message = f"With steps = {steps} the rows are wrong."
        attempt.expect_close(attempt(p, steps), {sincos(places + steps, dim): message})
    message = "With dim = 10 the rows are wrong. Take the width from p."
    attempt.expect_close(attempt(sincos(places, 10), 2), {sincos(places + 2, 10): message})


def line(old: int, new: int, corners: bool = False, nearest: bool = False) -> Tensor:
    """Linear interpolation from `old` to `new` points, as a table [new, old]."""
    i = torch.arange(float(new))
    at = i * (old - 1) / max(new - 1, 1) if corners else (i + 0.5) * old / new - 0.5
    at = (i * old / new).floor() if nearest else at.clamp(0, old - 1)
    return (1 - (at[:, None] - torch.arange(old)).abs()).clamp(0)


def plane(old: tuple[int, int], new: tuple[int, int], **kind: bool) -> Tensor:
    """Bilinear interpolation of a grid in reading order, [new tokens, old tokens]."""
    return torch.kron(*(line(a, b, **kind) for a, b in zip(old, new, strict=True)))


@exercise(seed=1)
def resample_linear(attempt: Attempt, normal: Draw) -> None:
    """table [1 + R * C, dim], old_grid, new_grid -> [1 + R' * C', dim]."""
    old, new, dim = (3, 4), (5, 7), 2
    table = normal(1 + old[0] * old[1], dim)
    places = table[1:]

    def call(table: Tensor, grid: tuple[int, int]) -> Tensor:
        shape = {"1 + rows * columns": 1 + grid[0] * grid[1], "dim": dim}
        return attempt(table, old, grid, shape=shape)

    def interpolated(channels_first: Tensor, **how) -> Tensor:
        return F.interpolate(channels_first[None], new, **how)[0].flatten(1).T

    corners = dict(mode="bilinear", align_corners=True)
    result = call(table, new)
    message = "The class token's row is not kept as the first row of the result."
    attempt.expect_close(result[0], {table[0]: message})
    images = places.T.unflatten(1, old)  # [dim, R, C]
    mixed = interpolated(places.reshape(dim, *old), **corners)
    message = "Channels and positions are mixed up. Bring dim before rows and columns by permuting."
    outcomes = {
        plane(old, new, corners=True) @ places: "The positions in between are wrong.",
        interpolated(images, mode="bilinear"): "The corners do not stay where they are. "
        "F.interpolate has an argument for that.",
        interpolated(images, mode="bicubic", align_corners=True): "This is bicubic interpolation. "
        "It should be bilinear.",
        interpolated(images): "This is the nearest old position, without a mean.",
        mixed: message,
        mixed.T.reshape(-1, dim): message,
        interpolated(places.T.unflatten(1, old[::-1]).mT, **corners): "Rows and columns are "
        "exchanged: position t is row t // C, column t % C.",
    }
    attempt.expect_close(result[1:], outcomes)
    for grid in ((2, 3), (3, 4), (7, 2)):
        message = f"From 3 x 4 to {grid[0]} x {grid[1]} the result is wrong."
        right = plane(old, grid, corners=True) @ places
        attempt.expect_close(call(table, grid)[1:], {right: message})


ALONE = "the result is wrong, though one row or one column alone is right."
DOWNWARDS = (
    "Tokens are counted column by column. In reading order token t stands in row t // C, column "
    "t % C."
)


@exercise("queries, keys", seed=0)
def relative_bias(attempt: Attempt, normal: Draw) -> None:
    """table [2 R - 1, 2 C - 1], grid (R, C) -> [tokens, tokens]."""
    # One row of patches first, then one column: each axis by itself.
    for grid, axis in (((1, 4), "columns"), ((3, 1), "rows")):
        table = normal(2 * grid[0] - 1, 2 * grid[1] - 1)
        expected = by_pairs(table, grid)
        outcomes = {
            expected: f"On a grid of {grid[0]} x {grid[1]} the entry for query i and key j should "
            f"be the one for an offset of j - i {axis}; offset 0 stands in the middle of the "
            "table.",
            expected.T: "The offsets have the wrong sign. Count from the query to the key.",
            by_pairs(table, grid, shift=0): "The offsets are taken as indices as they are, so that "
            "negative ones count from the end. Add R - 1 or C - 1 first.",
        }
        attempt.expect_close(attempt(table, grid), outcomes)
    grid = (3, 4)
    table = normal(5, 7)
    outcomes = {
        by_pairs(table, grid): f"On a grid of 3 x 4 {ALONE}",
        by_pairs(table, grid, order=down_the_columns(grid)): DOWNWARDS,
    }
    attempt.expect_close(attempt(table, grid), outcomes)


def by_pairs(table: Tensor, grid: tuple[int, int], shift=1, order: Tensor | None = None) -> Tensor:
    """The entry of every pair of tokens; the arguments after grid make mistakes."""
    order = torch.arange(grid[0] * grid[1]) if order is None else order
    places = order // grid[1], order % grid[1]
    row, column = (
        (place - place[:, None] + shift * (side - 1)) % size
        for place, side, size in zip(places, grid, table.shape, strict=True)
    )
    return table[row, column]


def down_the_columns(grid: tuple[int, int]) -> Tensor:
    """The positions of a grid, counted column by column."""
    return torch.arange(grid[0] * grid[1]).reshape(grid).T.flatten()


@exercise(seed=1)
def rotary_2d(attempt: Attempt, normal: Draw) -> None:
    """x [batch, heads, tokens, d_head], grid (R, C) -> as x."""
    batch, heads, d_head = 2, 3, 12

    def on(grid: tuple[int, int]) -> tuple[Tensor, Tensor]:
        tokens = grid[0] * grid[1]
        x = normal(batch, heads, tokens, d_head)
        shape = dict(batch=batch, heads=heads, tokens=tokens, d_head=d_head)
        return x, attempt(x, grid, shape=shape)

    x, result = on((3, 5))
    outcomes = {
        x[:, :, 0]: "The token in row 0, column 0 should come back unchanged: its angles are 0. "
        "Count from 0, and put the two numbers of a pair back where they were."
    }
    attempt.expect_close(result[:, :, 0], outcomes)
    outcomes = {
        x.norm(dim=-1): "The length of the tokens has changed, and no rotation does that. Check "
        "the signs in (a cos - b sin, a sin + b cos)."
    }
    attempt.expect_close(result.norm(dim=-1), outcomes)

    # On one row of patches the rows' half rests, on one column the columns' half.
    for grid, axis, half, rests, moves in (
        ((1, 40), "row", "first", slice(0, 6), slice(6, 12)),
        ((30, 1), "column", "second", slice(6, 12), slice(0, 6)),
    ):
        x, result = on(grid)
        outcomes = {
            x[..., rests]: f"On a grid of one {axis} the {half} half of d_head should not be "
            "turned. The first half is turned by the row, the second by the column."
        }
        attempt.expect_close(result[..., rests], outcomes)
        part = x[..., moves]
        places = torch.arange(x.shape[2])
        outcomes = {
            turn(part, places): f"On a grid of one {axis} the other half is turned wrongly.",
            turn(part, -places): "The pairs turn backwards. Check the signs of the sines.",
            turn(part, places, halves=True): "Numbers i and i + h / 2 are turned as a pair. Here "
            "pairs are neighbours, 2i and 2i + 1.",
            turn(part, places, base=1.0): "All pairs turn equally fast. Pair i turns at 10000 ** "
            "(-2i / h).",
            turn(part, places, width=d_head): "The rates are those of the whole d_head. Each half "
            "has its own width, h = d_head / 2.",
        }
        attempt.expect_close(result[..., moves], outcomes)
    grid = (3, 5)
    x, result = on(grid)
    right, downwards = (
        torch.cat([turn(x[..., :6], places // 5), turn(x[..., 6:], places % 5)], -1)
        for places in (torch.arange(15), down_the_columns(grid))
    )
    attempt.expect_close(result, {right: f"On a grid of 3 x 5 {ALONE}", downwards: DOWNWARDS})


def turn(x: Tensor, places: Tensor, base=10000.0, width=0, halves=False) -> Tensor:
    """Turns pairs [..., tokens, h] by their place; the arguments after it make mistakes."""
    h = x.shape[-1]
    return turned(x, places[:, None] * base ** (-torch.arange(0, h, 2) / (width or h)), halves)


def turned(x: Tensor, angles: Tensor, halves: bool = False) -> Tensor:
    """Pairs of features turned: features 2j and 2j + 1, or j and j plus the half."""
    pairs = x.unflatten(-1, (2, -1)).mT if halves else x.unflatten(-1, (-1, 2))
    hands = torch.polar(torch.ones_like(angles), angles)
    result = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * hands)
    return (result.mT if halves else result).flatten(-2)
