"""Exercises of chapter 10 about CKA and places.

What is expected comes from Gram matrices of all pictures, and from loops over places.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise
from course.check.memory import MemoryMeter

CHAPTER = "10_comparing_representations"
EACH_PICTURE = (
    "You take away the mean of each picture. It is each feature that must have mean 0, over the "
    "pictures."
)


def aligned(x: Tensor, y: Tensor, *, over: int | None = 0) -> Tensor:
    """The cosine of two Gram matrices, [pictures, pictures] each, after centring over an axis."""
    sides = (x, y) if over is None else (t - t.mean(over, keepdim=True) for t in (x, y))
    k, h = (t @ t.T for t in sides)
    return (k * h).sum() / (k.norm() * h.norm())


@exercise(CHAPTER)
def feature_cka(attempt: Attempt) -> None:
    """x [pictures, p], y [pictures, q] -> one number."""
    normal = normal_draws(seed=0)
    x = normal(9, 4)
    y = x @ normal(4, 6) + 2 * normal(9, 6)
    x, y = x - x.mean(0), y - y.mean(0)
    right, cross = aligned(x, y), (x.T @ y).norm()
    own = (x.T @ x).norm() * (y.T @ y).norm()
    attempt.expect_close(
        attempt(x, y),
        right,
        "For features that are centred already the value is wrong.",
        mistakes={
            EACH_PICTURE: aligned(x, y, over=1),
            "The norm of the product of both is not squared.": cross / own,
            "This is the root of CKA: square the norm of the product of both.": right.sqrt(),
            "The norms below the line are squared as well: now the value depends on the scale.": (
                cross.square() / own.square()
            ),
            "Below the line stand the norms of x and y. The products of each with itself are "
            "wanted.": (cross / (x.norm() * y.norm())).square(),
        },
    )
    for moved, name in ((y + 3 + normal(6), "y"), (x + 3 + normal(4), "x")):
        pair = (x, moved) if name == "y" else (moved, y)
        attempt.expect_close(
            attempt(*pair),
            right,
            f"With a number added to each feature of {name} the value is another one. CKA centres "
            "both sides.",
            mistakes={
                "You take away the mean of all numbers. Each feature has a mean of its own.": (
                    aligned(*(t - t.mean() for t in pair), over=None)
                ),
            },
        )
    many = normal(60, 5), normal(60, 3)
    meter = MemoryMeter(*many)
    attempt.expect_close(
        attempt(*many, within=meter), aligned(*many), "For 60 pictures the value is wrong."
    )
    attempt.expect(
        meter.largest < 60 * 60,
        "A matrix of all pairs of pictures is made. Multiply features with features: the products "
        "are [p, q], [p, p] and [q, q], however many pictures there are.",
    )


@exercise(CHAPTER)
def place_error(attempt: Attempt) -> None:
    """table [rows, columns, rows, columns] -> one number."""
    rows, columns = 3, 5

    def pointing(row: int, column: int) -> Tensor:
        """A table in which every token is most like the patch in one place."""
        table = normal_draws(seed=1)(rows, columns, rows, columns).clamp(-2, 2)
        table[:, :, row, column] += 9
        return table

    def mean(measure: Callable[[int, int], float]) -> Tensor:
        # From every place to row 1, column 4.
        steps = [(abs(r - 1), abs(c - 4)) for r in range(rows) for c in range(columns)]
        return torch.tensor([float(measure(a, b)) for a, b in steps]).mean()

    def turned(table: Tensor) -> dict[str, Tensor]:
        flat = table.reshape(rows * columns, -1)
        return {
            "You ask each patch for its token. The table's first two axes are the token's.": away(
                flat.argmax(0), columns
            ),
            "You take the patch that is least like the token.": away(flat.argmin(1), columns),
            "You take the largest size, whatever the sign. What is most unlike is not alike.": away(
                flat.abs().argmax(1), columns
            ),
        }

    attempt.expect_close(
        attempt(pointing(1, 4)),
        mean(lambda a, b: (a * a + b * b) ** 0.5),
        "Where every token is most like the patch in row 1, column 4, of 3 rows and 5 columns, the "
        "mean distance is wrong.",
        mistakes={
            "You add up steps along rows and columns. The straight line is wanted.": (
                mean(lambda a, b: a + b)
            ),
            "These are squares of distances.": mean(lambda a, b: a * a + b * b),
            "This is the root of the mean square: take the root for each token, then the mean.": (
                mean(lambda a, b: a * a + b * b).sqrt()
            ),
            "The number of the patch is turned into a row and a column by the number of rows. "
            "Patches are counted along a row first: divide by the number of columns.": (
                by_rows(rows, columns, 9)
            ),
            "This counts tokens that miss, not how far they miss.": torch.tensor(14 / 15),
            "This is the difference of the patches' numbers: the last of a row and the first of "
            "the next are no neighbours.": torch.arange(15.0).sub(9).abs().mean(),
        }
        | turned(pointing(1, 4)),
    )
    table = normal_draws(seed=2)(rows, columns, rows, columns)
    attempt.expect_close(
        attempt(table),
        away(table.flatten(2).flatten(0, 1).argmax(1), columns),
        "With another nearest patch for each token the mean distance is wrong.",
        mistakes=turned(table),
    )
    own = torch.eye(rows * columns).view(rows, columns, rows, columns)
    attempt.expect_close(
        attempt(own), torch.tensor(0.0), "Where each token is most like its own patch it is 0."
    )


def away(found: Tensor, columns: int) -> Tensor:
    """Mean distance of places from those found for them, both counted along the rows."""
    here = torch.arange(len(found))
    down, right = found // columns - here // columns, found % columns - here % columns
    return (down.square() + right.square()).sqrt().mean()


def by_rows(rows: int, columns: int, number: int) -> Tensor:
    """The mean distance to a place whose number is divided by the wrong length."""
    row, column = divmod(number, rows)
    down = torch.arange(rows)[:, None] - row
    right = torch.arange(columns) - column
    return (down.square() + right.square()).sqrt().mean()
