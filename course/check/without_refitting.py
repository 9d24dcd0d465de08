"""Exercises of chapter 10 that replace many passes or fits by one.

What is expected comes from all pictures at once, and from fits made again without a row.
"""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise
from course.check.memory import MemoryMeter
from course.check.similarities import CHAPTER, aligned


@exercise(CHAPTER)
def streamed_cka(attempt: Attempt) -> None:
    """x [pictures, p], y [pictures, q], batch -> one number."""
    normal = normal_draws(seed=3)
    x = normal(24, 3)
    y = x @ normal(3, 4) + normal(24, 4)
    x, y = x - x.mean(0), y - y.mean(0)
    attempt.expect_close(
        attempt(x, y, 30),
        aligned(x, y),
        "For a single batch, centred already, it is the CKA of that batch.",
        mistakes={"This is the root of CKA.": aligned(x, y).sqrt()},
    )
    attempt.expect_close(
        attempt(x + 2, y - 1, 30),
        aligned(x, y),
        "A number added to all features of a side changes nothing: take away the means.",
    )
    parts = list(zip(x.split(7), y.split(7), strict=True))
    within = [(a - a.mean(0), b - b.mean(0)) for a, b in parts]
    alone = torch.stack([aligned(a, b) for a, b in parts])
    sizes = torch.tensor([7.0, 7.0, 7.0, 3.0]) / 24
    attempt.expect_close(
        attempt(x, y, 7),
        aligned(x, y),
        "In batches of 7, 7, 7 and 3 pictures the value must be that of all 24 at once.",
        mistakes={
            "This is the mean of the batches' own values.": alone.mean(),
            "This is the mean of the batches' own values, by size.": (sizes * alone).sum(),
            "Each batch is centred by its own mean. The mean of all pictures is wanted; it is "
            "known at the end.": aligned(*(torch.cat(side) for side in zip(*within, strict=True))),
            "This is the last batch alone.": alone[-1],
            "You take the mean of the batches' means. A larger batch counts for more.": aligned(
                *(t - torch.stack([c.mean(0) for c in t.split(7)]).mean(0) for t in (x, y)),
                over=None,
            ),
            "The last batch is smaller than the others, and is left out.": aligned(x[:21], y[:21]),
        },
    )
    a, b = normal(450, 3), normal(450, 2)
    meter = MemoryMeter(a, b)
    attempt.expect_close(
        attempt(a, b, 50, within=meter), aligned(a, b), "For nine batches the value is wrong."
    )
    attempt.expect(
        meter.largest < 450 * 2,
        f"A tensor of {meter.largest} numbers is made for 450 pictures in batches of 50. Keep "
        "sums: of the features, and of the products of features.",
    )


def fitted(x: Tensor, y: Tensor, penalty: float, at: Tensor) -> Tensor:
    """Ridge regression with a bias that has no penalty, and its predictions elsewhere."""
    u, level = x - x.mean(0), y.mean(0)
    system = u.T @ u + penalty * torch.eye(x.shape[1])
    weight = torch.linalg.solve(system, u.T @ (y - level))
    return level + (at - x.mean(0)) @ weight


@exercise(CHAPTER)
def left_out(attempt: Attempt) -> None:
    """x [n, features], y [n, targets], penalty -> [n, targets]."""
    n, features, targets = 11, 4, 2
    normal = normal_draws(seed=4)
    shape = dict(n=n, targets=targets)
    x = normal(n, features)
    y = x @ normal(features, targets) + normal(n, targets)
    x, y = x - x.mean(0), y - y.mean(0)

    def others(x: Tensor, y: Tensor, penalty: float) -> Tensor:
        rows = [torch.arange(len(x)) != i for i in range(len(x))]
        return torch.cat([fitted(x[r], y[r], penalty, x[~r]) for r in rows])

    def leverage(x: Tensor, penalty: float, share: float = 1 / n) -> Tensor:
        u = x - x.mean(0)
        system = u.T @ u + penalty * torch.eye(features)
        return (u @ torch.linalg.solve(system, u.T)).diagonal()[:, None] + share

    def mistakes(x: Tensor, y: Tensor, penalty: float) -> dict[str, Tensor]:
        fit = fitted(x, y, penalty, x)
        h, bare = leverage(x, penalty), leverage(x, penalty, 0.0)
        return {
            "This is the fit to all rows: each row has seen its own target.": fit,
            "These are the errors of rows left out. Take them away from the targets.": (y - fit)
            / (1 - h),
            "The bias is fitted without the row as well: its share of the leverage, 1 / n, is "
            "missing.": y - (y - fit) / (1 - bare),
            "The errors are multiplied by 1 - h. A row that is left out has a larger error: "
            "divide.": y - (y - fit) * (1 - h),
            "All rows get the mean leverage. Each has its own.": y - (y - fit) / (1 - h.mean()),
        }

    attempt.expect_close(
        attempt(x, y, 0.0, shape=shape),
        others(x, y, 0.0),
        "Without a penalty, x and y centred, the predictions for rows left out are wrong.",
        mistakes=mistakes(x, y, 0.0),
    )
    attempt.expect_close(
        attempt(x, y, 3.0, shape=shape),
        others(x, y, 3.0),
        "With a penalty of 3 the predictions are wrong.",
        mistakes={
            "The penalty is not used.": others(x, y, 0.0),
            "The penalty is squared.": others(x, y, 9.0),
            "The penalty is multiplied by the number of rows.": others(x, y, 3.0 * n),
            "The penalty shrinks the fit, but the leverage is that without one.": y
            - (y - fitted(x, y, 3.0, x)) / (1 - leverage(x, 0.0)),
        }
        | mistakes(x, y, 3.0),
    )
    moved, level = x + 2 * normal(features), y + 5
    attempt.expect_close(
        attempt(moved, level, 3.0, shape=shape),
        others(moved, level, 3.0),
        "With features and targets that are not centred the predictions are wrong. The bias has no "
        "penalty: take the means away, and add the targets' mean at the end.",
        mistakes={"The targets' mean is not added back.": others(moved, y, 3.0)},
    )
