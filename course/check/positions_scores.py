"""Exercises of chapter 03 about positions that act on scores.

As in positions_tables, what is expected is computed here and does not come from minivit.
"""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "03_positions"
ALONE = "the result is wrong, though one row or one column alone is right."
DOWNWARDS = (
    "Tokens are counted column by column. In reading order token t stands in row t // C, column "
    "t % C."
)


@exercise(CHAPTER)
def relative_bias(attempt: Attempt) -> None:
    """table [2 R - 1, 2 C - 1], grid (R, C) -> [tokens, tokens]."""
    normal = normal_draws(seed=0)
    # One row of patches first, then one column: each axis by itself.
    for grid, axis in (((1, 4), "columns"), ((3, 1), "rows")):
        table = normal(2 * grid[0] - 1, 2 * grid[1] - 1)
        expected = by_pairs(table, grid)
        tokens = grid[0] * grid[1]
        attempt.expect_close(
            attempt(table, grid, shape=dict(queries=tokens, keys=tokens)),
            expected,
            f"On a grid of {grid[0]} x {grid[1]} the entry for query i and key j should be the one "
            f"for an offset of j - i {axis}; offset 0 stands in the middle of the table.",
            mistakes={
                "The offsets have the wrong sign. Count from the query to the key.": (expected.T),
                "The offsets are taken as indices as they are, so that negative ones count from "
                "the end. Add R - 1 or C - 1 first.": by_pairs(table, grid, shift=0),
            },
        )

    grid, tokens = (3, 4), 12
    table = normal(5, 7)
    attempt.expect_close(
        attempt(table, grid, shape=dict(queries=tokens, keys=tokens)),
        by_pairs(table, grid),
        f"On a grid of 3 x 4 {ALONE}",
        mistakes={DOWNWARDS: by_pairs(table, grid, order=down_the_columns(grid))},
    )


def by_pairs(
    table: Tensor, grid: tuple[int, int], shift: int = 1, order: list[int] | None = None
) -> Tensor:
    """The entry of every pair of tokens, in a loop; the arguments after grid make mistakes."""
    tokens = grid[0] * grid[1]
    order = order or list(range(tokens))
    bias = torch.empty(tokens, tokens)
    for i in range(tokens):
        for j in range(tokens):
            (r, c), (key_r, key_c) = divmod(order[i], grid[1]), divmod(order[j], grid[1])
            row, column = key_r - r + shift * (grid[0] - 1), key_c - c + shift * (grid[1] - 1)
            bias[i, j] = table[row % len(table), column % table.shape[1]]
    return bias


def down_the_columns(grid: tuple[int, int]) -> list[int]:
    """The places of a grid, counted column by column."""
    return torch.arange(grid[0] * grid[1]).reshape(grid).T.flatten().tolist()


@exercise(CHAPTER)
def rotary_2d(attempt: Attempt) -> None:
    """x [batch, heads, tokens, d_head], grid (R, C) -> as x."""
    batch, heads, d_head = 2, 3, 12
    normal = normal_draws(seed=1)

    def turned(grid: tuple[int, int]) -> tuple[Tensor, Tensor]:
        tokens = grid[0] * grid[1]
        x = normal(batch, heads, tokens, d_head)
        shape = dict(batch=batch, heads=heads, tokens=tokens, d_head=d_head)
        return x, attempt(x, grid, shape=shape)

    x, result = turned((3, 5))
    attempt.expect_close(
        result[:, :, 0],
        x[:, :, 0],
        "The token in row 0, column 0 should come back unchanged: its angles are 0. Count from 0, "
        "and put the two numbers of a pair back where they were.",
    )
    attempt.expect_close(
        result.norm(dim=-1),
        x.norm(dim=-1),
        "The length of the tokens has changed, and no rotation does that. Check the signs in "
        "(a cos - b sin, a sin + b cos).",
    )

    # On one row of patches the rows' half rests, on one column the columns' half.
    for grid, axis, rests, moves in (
        ((1, 40), "row", slice(0, 6), slice(6, 12)),
        ((30, 1), "column", slice(6, 12), slice(0, 6)),
    ):
        x, result = turned(grid)
        half = "first" if axis == "row" else "second"
        attempt.expect_close(
            result[..., rests],
            x[..., rests],
            f"On a grid of one {axis} the {half} half of d_head should not be turned. The first "
            "half is turned by the row, the second by the column.",
        )
        part, places = x[..., moves], torch.arange(x.shape[2])
        attempt.expect_close(
            result[..., moves],
            turn(part, places),
            f"On a grid of one {axis} the other half is turned wrongly.",
            mistakes={
                "The pairs turn backwards. Check the signs of the sines.": turn(part, -places),
                "Numbers i and i + h / 2 are turned as a pair. Here pairs are neighbours, 2i and "
                "2i + 1.": apart(part, places),
                "All pairs turn equally fast. Pair i turns at 10000 ** (-2i / h).": turn(
                    part, places, base=1.0
                ),
                "The rates are those of the whole d_head. Each half has a width of its own, h = "
                "d_head / 2.": turn(part, places, width=d_head),
            },
        )

    grid = (3, 5)
    x, result = turned(grid)

    def by_place(places: Tensor) -> Tensor:
        return torch.cat([turn(x[..., :6], places // 5), turn(x[..., 6:], places % 5)], -1)

    attempt.expect_close(
        result,
        by_place(torch.arange(15)),
        f"On a grid of 3 x 5 {ALONE}",
        mistakes={DOWNWARDS: by_place(torch.tensor(down_the_columns(grid)))},
    )


def turn(x: Tensor, places: Tensor, base: float = 10000.0, width: int | None = None) -> Tensor:
    """Turns neighbouring pairs [..., tokens, h]; base and width make mistakes."""
    h = x.shape[-1]
    rates = base ** (-torch.arange(0, h, 2) / (width or h))
    hands = torch.polar(torch.ones(len(places), h // 2), places[:, None] * rates)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * hands).flatten(-2)


def apart(x: Tensor, places: Tensor) -> Tensor:
    """Turns numbers i and i + h / 2 as pairs."""
    h = x.shape[-1]
    order = torch.arange(h).reshape(2, h // 2).T.flatten()  # 0, h / 2, 1, h / 2 + 1, ...
    return turn(x[..., order], places)[..., order.argsort()]
