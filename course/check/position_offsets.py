"""The exercise of chapter 08 about a table of positions.

What is expected comes from a loop over all pairs of places.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise


@exercise("08_filters_and_positions")
def cosine_by_offset(attempt: Attempt) -> None:
    """table [rows, columns, dim] -> mean cosine by offset [2 rows - 1, 2 columns - 1]."""
    for rows, columns, dim in ((3, 5, 6), (5, 2, 3)):
        table = normal_draws(seed=rows)(rows, columns, dim) + 0.5
        unit = F.normalize(table, dim=-1)
        shape = dict(rows=2 * rows - 1, columns=2 * columns - 1)
        sums, pairs = by_offset(unit)
        raw, _ = by_offset(table)
        middle = by_offset(F.normalize(table - table.mean((0, 1)), dim=-1))[0] / pairs
        attempt.expect_close(
            attempt(
                table,
                shape=shape,
                if_not_finite="The result contains NaN or infinity, though every offset has at "
                "least one pair of places.",
            ),
            sums / pairs,
            "The mean cosine by offset is wrong.",
            mistakes={
                "These are dot products. Divide by the lengths of both vectors.": raw / pairs,
                "These are sums over the pairs. An offset has as many pairs as fit on the grid: "
                "divide by their number.": sums,
                "All offsets are divided by the number of places. Divide each by its own number "
                "of pairs.": sums / (rows * columns),
                "Pairs are taken across the border, as if the grid were a ring.": around(unit),
                "The columns are mirrored: for offset (1, 1) compare with the place below and to "
                "the right.": (sums / pairs).flip(1),
                "The mean vector is taken away first. Compare the vectors as they are.": middle,
                "The offset 0 stands in the corner. It belongs in the middle, at "
                "[rows - 1, columns - 1].": (sums / pairs).roll((1 - rows, 1 - columns), (0, 1)),
            },
        )


def by_offset(table: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of dot products by offset, and the number of pairs."""
    rows, columns, _ = table.shape
    sums, pairs = torch.zeros(2, 2 * rows - 1, 2 * columns - 1)
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).tolist()
    for r, c in places:
        for s, d in places:
            at = rows - 1 + s - r, columns - 1 + d - c
            sums[at] += table[r, c] @ table[s, d]
            pairs[at] += 1
    return sums, pairs


def around(unit: Tensor) -> Tensor:
    """The means on a ring."""
    rows, columns, _ = unit.shape
    result = torch.zeros(2 * rows - 1, 2 * columns - 1)
    for a in range(1 - rows, rows):
        for b in range(1 - columns, columns):
            moved = unit.roll((-a, -b), (0, 1))
            result[rows - 1 + a, columns - 1 + b] = (unit * moved).sum(-1).mean()
    return result
