"""Exercises of chapter 12: steps towards an input, and what nearness in features certifies."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "12_inverting_representations"


@exercise(CHAPTER)
def distance_step(attempt: Attempt) -> None:
    """x [batch, n], target [batch, m], function [batch, n] -> [batch, m], eps -> as x."""
    shape = dict(batch=2, n=4)
    normal = normal_draws(seed=0)
    x, target, matrix, eps = normal(2, 4), normal(2, 5), normal(5, 4), 0.5

    def linear(x: Tensor) -> Tensor:
        return x @ matrix.T

    def curved(x: Tensor) -> Tensor:
        return linear(x).tanh()

    left = linear(x) - target  # [batch, m]
    length = left.norm(dim=1, keepdim=True)
    g = left @ matrix / length  # the gradient of the distance
    attempt.expect_close(
        attempt(x, target, linear, eps, shape=shape),
        x - eps * g,
        "For a linear function the step is wrong.",
        mistakes={
            "x comes back unchanged.": x,
            "The step leads uphill: the gradient is added.": x + eps * g,
            "This is the gradient's step for half the squared distance. Divide by the distance.": (
                x - eps * g * length
            ),
            "This is the gradient's step for the squared distance. Take its root.": (
                x - 2 * eps * g * length
            ),
            "The distance is taken over the whole batch. Each entry has its own.": (
                x - eps * left @ matrix / left.norm()
            ),
            "You step by the mean over the batch. Take the sum: each entry steps by itself.": (
                x - eps * g / 2
            ),
            "The target is not used.": x
            - eps * linear(x) @ matrix / linear(x).norm(dim=1, keepdim=True),
            "eps is not used.": x - g,
            "The gradient itself is returned.": g,
        },
    )
    reached = curved(x)
    away = reached - target
    slope = (away / away.norm(dim=1, keepdim=True) * (1 - reached.square())) @ matrix
    attempt.expect_close(
        attempt(x, target, curved, eps, shape=shape),
        x - eps * slope,
        "For a function that is not linear the step is wrong, though for a linear one it is right.",
    )


@exercise(CHAPTER)
def allowed_error(attempt: Attempt) -> None:
    """jacobians [batch, m, n], distances [batch] -> [batch]."""
    shape = dict(batch=3)
    normal = normal_draws(seed=1)
    values = torch.tensor([[4.0, 2.0, 0.5, 0.2], [3.0, 1.5, 1.0, 0.25], [8.0, 5.0, 2.0, 1.25]])
    left = torch.linalg.qr(normal(3, 6, 4)).Q
    right = torch.linalg.qr(normal(3, 4, 4)).Q
    jacobians = left * values[:, None] @ right.mT  # [3, 6, 4]
    ones, distances = torch.ones(3), torch.tensor([0.5, 2.0, 3.0])
    least = values[:, -1]
    attempt.expect_close(
        attempt(jacobians, ones, shape=shape),
        1 / least,
        "At distances of 1 the result is wrong.",
        mistakes={
            "You divide by the largest singular value: that is the shortest error, not the "
            "longest.": 1 / values[:, 0],
            "This is the smallest singular value itself. Divide by it.": least,
            "This is the condition number.": values[:, 0] / least,
            "You divide by an eigenvalue of the Jacobian's square. Take its root.": 1 / least**2,
            "You divide by the Frobenius norm, which is for errors in random directions.": (
                1 / values.square().sum(1).sqrt()
            ),
            "One singular value serves the whole batch. Each Jacobian has its own.": (
                ones / least.min()
            ),
        },
    )
    attempt.expect_close(
        attempt(jacobians, distances, shape=shape),
        distances / least,
        "At other distances than 1 the result is wrong.",
        mistakes={
            "distances is not used.": 1 / least,
            "distances is squared.": distances**2 / least,
            "You divide by distances.": 1 / least / distances,
        },
    )


@exercise(CHAPTER)
def residual_input(attempt: Attempt) -> None:
    """y [batch, tokens, dim], branch, steps -> as y."""
    shape = dict(batch=2, tokens=3, dim=5)
    y = normal_draws(seed=2)(*shape.values())

    def branch(x: Tensor) -> Tensor:
        return 0.5 * (x + 1).sin()

    def after(steps: int) -> Tensor:
        return y if steps == 0 else y - branch(after(steps - 1))

    attempt.expect_close(
        attempt(y, branch, 0, shape=shape), y, "With no steps the result is not y."
    )
    attempt.expect_close(
        attempt(y, branch, 1, shape=shape),
        after(1),
        "After one step the result is wrong.",
        mistakes={
            "The branch is added. To undo it, subtract it.": y + branch(y),
            "You start from zero. Start from y.": y - branch(torch.zeros_like(y)),
            "One step too many is taken.": after(2),
            "y comes back: one step too few is taken.": y,
            "The branch alone comes back.": branch(y),
        },
    )
    attempt.expect_close(
        attempt(y, branch, 3, shape=shape),
        after(3),
        "After three steps the result is wrong, though after one it is right.",
        mistakes={
            "The branch is subtracted from the newest x. Subtract it from y.": subtracted(
                y, branch, 3
            ),
            "The branch always reads y. It should read the newest x.": after(1),
        },
    )


def subtracted(x: Tensor, branch, steps: int) -> Tensor:
    """What comes of ``x <- x - branch(x)``."""
    for _ in range(steps):
        x = x - branch(x)
    return x
