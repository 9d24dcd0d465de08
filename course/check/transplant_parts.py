"""Exercises of chapter 17 about models made of parts: what each contributes, and how they fit."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "17_transplants"


@exercise(CHAPTER)
def main_effects(attempt: Attempt) -> None:
    """results [2] * k -> the main effect of each of k parts, [k]."""
    one = torch.tensor([3.0, 5.0])
    attempt.expect_close(
        attempt(one, shape=dict(parts=1)),
        torch.tensor([2.0]),
        "With one part, 3 without it and 5 with it, its effect is 2.",
        mistakes={
            "The sign is wrong: with the part (index 1) less without it (index 0).": torch.tensor(
                [-2.0]
            ),
            "This is half of the effect: with the part less the mean of all.": torch.tensor([1.0]),
            "This is the result with the part. Subtract that without it.": torch.tensor([5.0]),
        },
    )
    for k in (2, 4):
        results = normal_draws(seed=k)(*[2] * k)
        halves = [[results.select(axis, state) for state in (0, 1)] for axis in range(k)]
        effects = torch.stack([high.mean() - low.mean() for low, high in halves])
        attempt.expect_close(
            attempt(results, shape=dict(parts=k)),
            effects,
            f"With {k} parts the effects are wrong.",
            mistakes={
                "The parts are in the wrong order. Axis 0 is the first.": effects.flip(0),
                "The differences are summed over the other parts. Take their mean.": (
                    effects * 2 ** (k - 1)
                ),
                "This is what each part does in a host with no other trained part. Take the mean "
                "over all states of the others.": torch.stack(
                    [(high - low).flatten()[0] for low, high in halves]
                ),
                "This is what each part adds when all others are trained. Take the mean over all "
                "states of the others.": torch.stack(
                    [(high - low).flatten()[-1] for low, high in halves]
                ),
            },
        )


def affine_fit(x: Tensor, y: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """The matrix and the shift of least penalised squares, by one system for both."""
    table = torch.cat([x, torch.ones(len(x), 1)], 1)
    penalty = ridge * torch.eye(table.shape[1])
    penalty[-1, -1] = 0
    found = torch.linalg.solve(table.T @ table + penalty, table.T @ y)
    return found[:-1], found[-1]


@exercise(CHAPTER)
def stitched(attempt: Attempt) -> None:
    """source [batch, tokens, d], target [batch, tokens, e], new [other, tokens, d], ridge."""
    batch, tokens, d, e, other = 7, 4, 3, 5, 2
    shape = dict(other=other, tokens=tokens, e=e)
    normal = normal_draws(seed=3)
    source, new, weight = normal(batch, tokens, d), normal(other, tokens, d), normal(d, e)
    source, centred = source - source.mean((0, 1)), new - new.mean((0, 1))
    attempt.expect_close(
        attempt(source, source @ weight, centred, 0.0, shape=shape),
        centred @ weight,
        "Where the target is a matrix times the source, without a shift and a penalty, new tokens "
        "should go through that matrix.",
    )
    shift, offset = normal(e), normal(d)
    moved = source + offset
    target = moved @ weight + shift
    attempt.expect_close(
        attempt(moved, target, new, 0.0, shape=shape),
        new @ weight + shift,
        "With a shift in the target and a mean in the source the result is wrong.",
        mistakes={
            "The target's mean is not added at the end.": (new - offset) @ weight,
            "The source's mean must be taken from the new tokens too.": (
                new @ weight + target.mean((0, 1))
            ),
            "The new tokens' own mean is taken from them. It is the source's that the map was "
            "fitted with.": centred @ weight + target.mean((0, 1)),
            "There is no shift b: fit it, or take the means away first.": (
                new @ torch.linalg.lstsq(moved.flatten(0, 1), target.flatten(0, 1)).solution
            ),
        },
    )
    noisy, ridge = target + normal(batch, tokens, e), 6.0
    x, y = moved.flatten(0, 1), noisy.flatten(0, 1)
    A, b = affine_fit(x, y, ridge)

    def by(ridge: float) -> Tensor:
        A, b = affine_fit(x, y, ridge)
        return new @ A + b

    table = torch.cat([x, torch.ones(len(x), 1)], 1)
    all_alike = torch.linalg.solve(table.T @ table + ridge * torch.eye(d + 1), table.T @ y)
    attempt.expect_close(
        attempt(moved, noisy, new, ridge, shape=shape),
        new @ A + b,
        f"With ridge = {ridge:g} the result is wrong.",
        mistakes={
            "ridge is not used.": by(0.0),
            "ridge is squared.": by(ridge**2),
            "ridge is multiplied by the number of tokens. The sum in the formula is no mean.": by(
                ridge * len(x)
            ),
            "ridge is divided by the number of tokens. The sum in the formula is no mean.": by(
                ridge / len(x)
            ),
            "The shift is penalised too.": new @ all_alike[:-1] + all_alike[-1],
        },
    )
