"""Exercises of chapter 03 about tables of positions.

What is expected comes from formulas and loops, never from minivit: a mistake in the package must
not make a wrong answer right.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, close, normal_draws
from course.check.exercise import exercise

CHAPTER = "03_positions"


@exercise(CHAPTER)
def add_positions(attempt: Attempt) -> None:
    """tokens [batch, 1 + patches, dim], table [patches, dim] -> as tokens."""
    batch, patches, dim = 2, 5, 3
    normal = normal_draws(seed=0)
    tokens, table = normal(batch, 1 + patches, dim), normal(patches, dim)
    result = attempt(tokens, table, shape=dict(batch=batch, tokens=1 + patches, dim=dim))
    added = result - tokens

    attempt.expect(
        not close(added[:, :-1], table.expand(batch, patches, dim)),
        "The first row of the table goes to the class token and the last token gets nothing. The "
        "patches begin at token 1.",
    )
    attempt.expect(
        not added[:, 0].any(),
        "The class token has changed. It has no place on the grid and should stay as it is.",
    )
    attempt.expect(bool(added.any()), "The tokens come back unchanged. Is the sum returned?")
    attempt.expect_close(
        added[:, 1:],
        table.expand(batch, patches, dim),
        "Token 1 + t should get row t of the table, in every picture of the batch.",
        mistakes={
            "Only the first picture of the batch gets positions.": torch.stack([table, 0 * table]),
            "The table is subtracted.": -table.expand(batch, patches, dim),
        },
    )


def sincos(places: Tensor, dim: int) -> Tensor:
    """The table of the chapter, number by number, at any places."""
    table = torch.empty(len(places), dim)
    for row, place in enumerate(places.tolist()):
        for i in range(dim // 2):
            angle = place / 10000 ** (2 * i / dim)
            table[row, 2 * i], table[row, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return table


@exercise(CHAPTER)
def move_by(attempt: Attempt) -> None:
    """p [n, dim], rows of a sine-cosine table; steps, a number -> the rows that many places on."""
    n, dim = 5, 6
    places = torch.tensor([7.0, 0.0, 3.0, 12.0, 4.0])
    p = sincos(places, dim)
    shape = dict(n=n, dim=dim)
    attempt.expect_close(
        attempt(p, 0, shape=shape),
        p,
        "With steps = 0 every row should come back as it is.",
        mistakes={
            "With steps = 0 the numbers come back in another order. Sine and cosine of pair i "
            "stand at 2i and 2i + 1.": torch.cat([p[:, 0::2], p[:, 1::2]], 1),
            "With steps = 0 sine and cosine of each pair come back exchanged.": p[
                :, [1, 0, 3, 2, 5, 4]
            ],
        },
    )

    moved = attempt(p, 2, shape=shape)
    lengths = moved.unflatten(1, (-1, 2)).norm(dim=-1)
    attempt.expect(
        bool((lengths - 1).abs().max() < 1e-4),
        "After the move the squares of a pair no longer sum to one. Check the signs: sin(a + b) = "
        "sin a cos b + cos a sin b, cos(a + b) = cos a cos b - sin a sin b.",
    )
    turned = _turn_all(p, [2.0] * 3)
    attempt.expect_close(
        moved,
        sincos(places + 2, dim),
        "With steps = 2 the rows are wrong.",
        mistakes={
            "The rows move backwards.": sincos(places - 2, dim),
            "All pairs turn by the angle of the first. Pair i turns by omega_i * steps.": turned,
            "The rates are off: the exponent is -2i / dim with i = 0, 1, ..., one for each pair.": (
                _turn_all(p, [2 / 10000 ** (i / dim) for i in range(3)])
            ),
            "The rows are shifted in the tensor. They are in any order: turn each by itself.": (
                p.roll(-2, 0)
            ),
        },
    )
    for steps in (-3, 1.5, 40):
        attempt.expect_close(
            attempt(p, steps, shape=shape),
            sincos(places + steps, dim),
            f"With steps = {steps} the rows are wrong.",
        )
    attempt.expect_close(
        attempt(sincos(places, 10), 2, shape=dict(n=n, dim=10)),
        sincos(places + 2, 10),
        "With dim = 10 the rows are wrong. Take the width from p.",
    )


def _turn_all(p: Tensor, angles: list[float]) -> Tensor:
    """Turns each pair of every row by its angle, forward in place."""
    sine, cosine = p[:, 0::2], p[:, 1::2]
    by = torch.tensor(angles)
    pairs = sine * by.cos() + cosine * by.sin(), cosine * by.cos() - sine * by.sin()
    return torch.stack(pairs, -1).flatten(1)


def bilinear(table: Tensor, old: tuple[int, int], new: tuple[int, int]) -> Tensor:
    """Each new place as the weighted mean of at most four old ones, the corners kept."""
    rows = []
    for i in range(new[0]):
        for j in range(new[1]):
            u, v = i * (old[0] - 1) / (new[0] - 1), j * (old[1] - 1) / (new[1] - 1)
            row = torch.zeros(table.shape[1])
            for r in range(old[0]):
                for c in range(old[1]):
                    weight = max(0.0, 1 - abs(u - r)) * max(0.0, 1 - abs(v - c))
                    row += weight * table[r * old[1] + c]
            rows.append(row)
    return torch.stack(rows)


@exercise(CHAPTER)
def resample_linear(attempt: Attempt) -> None:
    """table [1 + R * C, dim], old_grid, new_grid -> [1 + R' * C', dim]."""
    old, new, dim = (3, 4), (5, 7), 2
    table = normal_draws(seed=1)(1 + old[0] * old[1], dim)
    places = table[1:]

    def call(table: Tensor, grid: tuple[int, int]) -> Tensor:
        shape = {"1 + rows * columns": 1 + grid[0] * grid[1], "dim": dim}
        return attempt(table, old, grid, shape=shape)

    def interpolated(channels_first: Tensor, **how) -> Tensor:
        return F.interpolate(channels_first[None], new, **how)[0].flatten(1).T

    result = call(table, new)
    attempt.expect_close(
        result[0], table[0], "The class token's row is not kept as the first row of the result."
    )
    pictures = places.T.unflatten(1, old)  # [dim, R, C]
    attempt.expect_close(
        result[1:],
        bilinear(places, old, new),
        "The places in between are wrong.",
        mistakes={
            "The corners do not stay where they are. F.interpolate has an argument for that.": (
                interpolated(pictures, mode="bilinear")
            ),
            "This is bicubic interpolation; bilinear is asked for.": interpolated(
                pictures, mode="bicubic", align_corners=True
            ),
            "This is the nearest old place, without a mean.": interpolated(pictures),
            "Channels and places are mixed up. Bring dim before rows and columns by permuting, "
            "not by reshaping.": interpolated(
                places.reshape(dim, *old), mode="bilinear", align_corners=True
            ),
            "Rows and columns are exchanged: place t is row t // C, column t % C.": interpolated(
                places.T.unflatten(1, old[::-1]).mT, mode="bilinear", align_corners=True
            ),
        },
    )
    for grid in ((2, 3), (3, 4), (7, 2)):
        attempt.expect_close(
            call(table, grid)[1:],
            bilinear(places, old, grid),
            f"From 3 x 4 to {grid[0]} x {grid[1]} the result is wrong.",
        )
