"""Exercises of chapter 01 about order: which number of a picture stands where among the patches.

What is expected comes from loops over squares, never from minivit.
"""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "01_images_as_sequences"


def square(images: Tensor, size: int, row: int, column: int) -> Tensor:
    """The patch in a row and column of the grid, ``[batch, channels, size, size]``."""
    top, left = row * size, column * size
    return images[:, :, top : top + size, left : left + size]


@exercise(CHAPTER)
def patch_at(attempt: Attempt) -> None:
    """images [batch, channels, height, width], index, size -> [batch, channels, size, size]."""
    batch, channels, rows, columns = 2, 3, 4, 5
    for size in (6, 7):  # the second catches a number typed in
        images = normal_draws(seed=6)(batch, channels, rows * size, columns * size)

        def cut(index: int, images: Tensor = images, size: int = size) -> Tensor:
            shape = dict(batch=batch, channels=channels, height=size, width=size)
            return attempt(images, index, size, shape=shape)

        attempt.expect_close(
            cut(0),
            square(images, size, 0, 0),
            "Patch 0 should be the square in the top left corner.",
        )
        attempt.expect_close(
            cut(3),
            square(images, size, 0, 3),
            "Patch 3 should be the fourth square of the first row.",
            mistakes={
                "Patch 3 starts at pixel 3. It should start three patches to the right: multiply "
                "by the size.": images[:, :, :size, 3 : 3 + size],
                "Patches are counted downwards. Reading order goes along a row first.": square(
                    images, size, 3, 0
                ),
            },
        )
        attempt.expect_close(
            cut(11),
            square(images, size, 2, 1),
            f"In a grid of {rows} rows and {columns} columns, patch 11 should be in row 2 and "
            "column 1, counted from 0.",
            mistakes={
                "The index is divided by the number of rows. A row of the grid is as long as there "
                "are columns: divide by their number.": square(images, size, 2, 3),
            },
        )


@exercise(CHAPTER)
def convolution_weight(attempt: Attempt) -> None:
    """matrix [size * size * channels, dim], channels, size -> [dim, channels, size, size]."""
    channels, size, dim = 3, 4, 5

    def weight_of(matrix: Tensor, channels: int, size: int) -> Tensor:
        shape = dict(dim=matrix.shape[1], channels=channels, height=size, width=size)
        return attempt(matrix, channels, size, shape=shape)

    # One colour: only filters, rows and columns.
    grey = normal_draws(seed=7)(size * size, dim)
    filters = [column.reshape(1, size, size) for column in grey.unbind(1)]
    attempt.expect_close(
        weight_of(grey, 1, size),
        torch.stack(filters),
        "With one channel, filter k should be column k of the matrix, cut into rows of the patch.",
        mistakes={
            "Rows and columns of the patch are exchanged: every filter is mirrored at its "
            "diagonal.": torch.stack(filters).mT,
            "The matrix is cut up as it lies in memory, which mixes the filters. A filter is a "
            "column of it: bring that axis to the front first.": grey.reshape(dim, 1, size, size),
        },
    )

    # Several colours, which stand innermost.
    matrix = normal_draws(seed=8)(size * size * channels, dim)
    expected = torch.zeros(dim, channels, size, size)
    for at in range(size * size * channels):
        pixel, channel = divmod(at, channels)
        expected[:, channel, pixel // size, pixel % size] = matrix[at]
    attempt.expect_close(
        weight_of(matrix, channels, size),
        expected,
        "With several channels the weight is wrong. Row (i * size + j) * channels + c of the "
        "matrix belongs to pixel (i, j) and channel c.",
        mistakes={
            "The channel is taken for the slowest of the three. In this matrix the channels of one "
            "pixel stand side by side.": matrix.T.reshape(dim, channels, size, size),
        },
    )


@exercise(CHAPTER)
def merged_tokens(attempt: Attempt) -> None:
    """tokens [batch, rows * columns, dim], rows, columns -> [batch, .. / 4, 4 * dim]."""
    batch, dim = 5, 7

    def merge(tokens: Tensor, rows: int, columns: int) -> Tensor:
        shape = dict(batch=batch, groups=rows * columns // 4, numbers=4 * dim)
        return attempt(tokens, rows, columns, shape=shape)

    # One group: the order within it, which is that of the tokens themselves.
    four = normal_draws(seed=9)(batch, 4, dim)
    attempt.expect_close(
        merge(four, 2, 2),
        four.reshape(batch, 1, 4 * dim),
        "On a 2 x 2 grid, the four tokens should stand one after another.",
        mistakes={
            "The numbers of the four tokens are interleaved. Each token should stay together.": (
                four.mT.reshape(batch, 1, 4 * dim)
            ),
            "The four stand in the order top left, bottom left, top right, bottom right. The right "
            "neighbour comes before the one below.": four[:, [0, 2, 1, 3]].reshape(batch, 1, -1),
        },
    )

    def groups(tokens: Tensor, columns: int, corners: list[int]) -> Tensor:
        right, below = 1, columns
        offsets = (0, right, below, below + right)
        found = [torch.cat([tokens[:, c + o] for o in offsets], -1) for c in corners]
        return torch.stack(found, 1)

    rows, columns = 6, 8
    down, along = range(0, rows, 2), range(0, columns, 2)
    tokens = normal_draws(seed=10)(batch, rows * columns, dim)
    corners = [row * columns + column for row in down for column in along]
    downwards = [row * columns + column for column in along for row in down]
    exchanged = [row * rows + column for row in along for column in down]
    attempt.expect_close(
        merge(tokens, rows, columns),
        groups(tokens, columns, corners),
        f"On a grid of {rows} rows and {columns} columns the groups are wrong. Each should hold "
        "two neighbours of one row and the two below them.",
        mistakes={
            "Four tokens that follow each other are merged: they lie in one line. Two of the four "
            "should come from the row below.": tokens.reshape(batch, -1, 4 * dim),
            f"Rows and columns are exchanged: the grid is read as {columns} rows of {rows}.": (
                groups(tokens, rows, exchanged)
            ),
            "The groups are counted downwards. They should stand in reading order, like the "
            "tokens.": groups(tokens, columns, downwards),
        },
    )
