"""Exercises of chapter 17 about how fast descent goes, and whether two speeds go together."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "17_transplants"


@exercise(CHAPTER)
def steps_needed(attempt: Attempt) -> None:
    """values [k], share -> the least whole number of steps."""
    for values, share, steps in (
        ([2.0, 1.0], 0.05, 11),  # factors 0 and 3/4
        ([1.0, 3.0, 2.0], 0.1, 20),  # 8/9 is the slowest factor, in no particular order
    ):
        slowest = 1 - (min(values) / max(values)) ** 2
        exact = torch.tensor(share).log() / torch.tensor(slowest).log()
        single = torch.tensor(share).log() / torch.tensor(1 - min(values) / max(values)).log()
        quickest = 1 - (sorted(values)[-2] / max(values)) ** 2
        attempt.expect_close(
            attempt(torch.tensor(values), share),
            torch.tensor(float(steps)),
            f"With the singular values {values} and share = {share} it takes {steps} steps.",
            mistakes={
                "This is not a whole number. Round it up.": exact,
                "One step fewer is not enough. Round up.": torch.tensor(float(steps - 1)),
                "One step fewer is enough.": torch.tensor(float(steps + 1)),
                "The factor of a step is 1 - (sigma / sigma_1)^2. You have not squared the "
                "quotient.": single.ceil(),
                "This is the number for the squared error. The errors themselves shall shrink.": (
                    exact / 2
                ).ceil(),
                "This is the number for a faster direction. The slowest decides.": (
                    torch.tensor(share).log() / torch.tensor(quickest).log()
                ).ceil(),
            },
        )
    attempt.expect_close(
        attempt(torch.tensor([3.0, 3.0, 3.0 / 2**0.5]), 0.3),
        torch.tensor(2.0),
        "With the singular values 3, 3 and 3 / sqrt(2) and share = 0.3 it takes 2 steps: each "
        "halves the slowest error.",
    )


@exercise(CHAPTER)
def by_weights(attempt: Attempt) -> None:
    """behind [out, tokens, dim], patches [tokens, n] -> [out, dim * n]."""
    out, tokens, dim, n = 2, 4, 3, 5
    shape = dict(out=out, weights=dim * n)
    normal = normal_draws(seed=1)
    behind, patches = normal(out, tokens, dim), normal(tokens, n)
    first = torch.zeros(tokens, 1)
    first[0] = 1

    def jacobian(behind: Tensor, patches: Tensor) -> Tensor:
        return torch.einsum("oti,tj->oij", behind, patches).reshape(out, dim * n)

    def by_columns(behind: Tensor, patches: Tensor) -> Tensor:
        return torch.einsum("oti,tj->oji", behind, patches).reshape(out, dim * n)

    only = patches * first
    attempt.expect_close(
        attempt(behind, only, shape=shape),
        jacobian(behind, only),
        "With one patch that is not zero the result is wrong. It should be K_oi a_j.",
        mistakes={
            "The entries of W are read column by column. Read them row by row: entry [i, j] stands "
            "at i * n + j.": by_columns(behind, only),
            "The sums are taken before the product. Each patch meets its own part of behind.": (
                jacobian(behind.sum(1, keepdim=True), only.sum(0, keepdim=True))
            ),
            "The mean is taken over the patches. Each adds its share.": (
                jacobian(behind, only) / tokens
            ),
        },
    )
    attempt.expect_close(
        attempt(behind, patches, shape=shape),
        jacobian(behind, patches),
        "With several patches the result is wrong. Sum over them.",
        mistakes={
            "Only the first patch is used.": jacobian(behind, only),
        },
    )


@exercise(CHAPTER)
def partial_correlation(attempt: Attempt) -> None:
    """x, y, z [n] -> Pearson's correlation of x and y without what is linear in z."""
    n = 9
    normal = normal_draws(seed=2)
    basis = torch.linalg.qr(torch.cat([torch.ones(n, 1), normal(n, 3)], 1)).Q.T
    z, u, v = basis[1:]  # of mean 0, length 1, orthogonal

    x, y = 2 * u, 3 * (0.6 * u + 0.8 * v)
    attempt.expect_close(
        attempt(x, y, z),
        torch.tensor(0.6),
        "Where neither x nor y has to do with z, and all have mean 0, this is their correlation.",
        mistakes={
            "The sign is wrong.": torch.tensor(-0.6),
            "This is the squared correlation.": torch.tensor(0.36),
        },
    )
    x, y = x + 4 * z, y - 3 * z

    def plain(x: Tensor, y: Tensor) -> Tensor:
        x, y = x - x.mean(), y - y.mean()
        return x @ y / (x.norm() * y.norm())

    attempt.expect_close(
        attempt(x, y, z),
        torch.tensor(0.6),
        "With x and y that depend on z the result is wrong.",
        mistakes={
            "z is not used: this is the plain correlation.": plain(x, y),
            "z is taken from x alone. Take it from y too.": plain(x - 4 * z, y),
            "z is taken from y alone. Take it from x too.": plain(x, y + 3 * z),
        },
    )
    attempt.expect_close(
        attempt(x, y, 5 * z),
        torch.tensor(0.6),
        "With a z of another length the result is wrong. Divide x . z by z . z.",
        mistakes={
            "z is subtracted without a slope.": plain(x - 5 * z, y - 5 * z),
        },
    )
    attempt.expect_close(
        attempt(x + 1, y - 2, z + 3),
        torch.tensor(0.6),
        "With vectors whose mean is not 0 the result is wrong. Subtract the means of all three.",
    )
