"""Exercises of chapter 09 about what one head looks at: at how many patches, and which way.

What is expected comes from loops over queries and keys.
"""

import math

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "09_where_attention_looks"


@exercise(CHAPTER)
def effective_keys(attempt: Attempt) -> None:
    """weights [heads, queries, keys] -> [heads]."""
    heads, queries, keys = 3, 4, 6

    def count(weights: Tensor) -> Tensor:
        return attempt(
            weights,
            shape=dict(heads=len(weights)),
            if_not_finite="A weight of exactly 0 gives NaN or infinity: 0 log 0 counts as 0.",
        )

    even = torch.full((heads, queries, keys), 1 / keys)
    attempt.expect_close(
        count(even),
        torch.full((heads,), float(keys)),
        f"{keys} keys of equal weight are {keys} effective keys.",
        mistakes={
            "This is the entropy, log n for n equal weights. Its exponential is the number of "
            "keys.": torch.full((heads,), math.log(keys)),
            "The logarithm is to base 2 and the exponential to base e.": torch.full(
                (heads,), math.exp(math.log2(keys))
            ),
            "You take the mean over keys. An entropy is a sum over keys.": torch.full(
                (heads,), math.exp(math.log(keys) / keys)
            ),
            "The entropy has the wrong sign.": torch.full((heads,), 1 / keys),
        },
    )
    single = torch.eye(keys)[:queries].expand(heads, -1, -1).contiguous()
    attempt.expect_close(
        count(single), torch.ones(heads), "All weight on one key is one effective key."
    )
    weights = normal_draws(seed=30)(heads, queries, keys).mul(2).softmax(-1)
    entropies = torch.tensor(
        [[-sum(w * math.log(w) for w in row) for row in head] for head in weights.tolist()]
    )
    attempt.expect_close(
        count(weights),
        entropies.exp().mean(1),
        "Where queries differ, the number is the mean over queries.",
        mistakes={
            "You take the exponential of the mean entropy. Take the mean of the exponentials, one "
            "for each query.": entropies.mean(1).exp(),
            "These are one over the sums of squares, another measure of the same kind.": (
                1 / weights.square().sum(-1)
            ).mean(1),
        },
    )


@exercise(CHAPTER)
def mean_offset(attempt: Attempt) -> None:
    """weights [heads, patches, patches], rows, columns -> [heads, 2]: down, right, in patches."""
    heads, rows, columns = 3, 2, 5
    patches = rows * columns

    def offset(weights: Tensor) -> Tensor:
        return attempt(weights, rows, columns, shape=dict(heads=len(weights), axes=2))

    def expected(weights: Tensor) -> Tensor:
        total = torch.zeros(len(weights), 2)
        for i in range(patches):
            for j in range(patches):
                down, right = j // columns - i // columns, j % columns - i % columns
                total += weights[:, i, j, None] * torch.tensor([down, right])
        return total / patches

    still = torch.eye(patches).expand(heads, -1, -1).contiguous()
    attempt.expect_close(
        offset(still),
        torch.zeros(heads, 2),
        "A head in which every patch looks at itself has no offset.",
    )
    first = torch.zeros(heads, patches, patches)
    first[:, :, 0] = 1
    attempt.expect_close(
        offset(first),
        torch.tensor([-0.5, -2.0]).expand(heads, 2),
        f"All look at the first patch, on a grid of {rows} rows and {columns} columns: half a row "
        "up and two columns to the left.",
        mistakes={
            "The signs are turned, or lost: subtract where the query is from where the key is.": (
                torch.tensor([0.5, 2.0]).expand(heads, 2)
            ),
            "The axes are exchanged, where down should come first, or the grid is read as "
            f"{columns} rows of {rows}.": torch.tensor([-2.0, -0.5]).expand(heads, 2),
            "This is the sum over queries. Take the mean.": (
                torch.tensor([-5.0, -20.0]).expand(heads, 2)
            ),
        },
    )
    weights = normal_draws(seed=31)(heads, patches, patches).mul(2).softmax(-1)
    attempt.expect_close(
        offset(weights),
        expected(weights),
        "For weights that differ everywhere the offset is wrong. Sum over keys by the weights, "
        "then take the mean over queries.",
    )
