"""Exercises of chapter 12: steps towards an input, what they leave, and what nearness certifies."""

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
def left_after(attempt: Attempt) -> None:
    """error [n], jacobian [m, n], steps -> [n]."""
    n = 3
    normal = normal_draws(seed=2)
    error = normal(n)
    values = torch.tensor([2.0, 1.0, 0.01])
    left = torch.linalg.qr(normal(5, n)).Q
    jacobian = left * values @ torch.linalg.qr(normal(n, n)).Q  # [5, 3]
    right = torch.linalg.svd(jacobian).Vh  # rows are singular vectors, with svd's signs
    shares = (values / values[0]).square()

    def after(factors: Tensor) -> Tensor:
        return factors * (right @ error) @ right

    def asked(steps: int) -> Tensor:
        return attempt(error, jacobian, steps, shape={"n": n})

    attempt.expect_close(
        asked(0),
        error,
        "With no steps all of the error is left.",
        mistakes={"One step too many is taken.": after(1 - shares)},
    )
    attempt.expect_close(
        asked(1),
        after(1 - shares),
        "After one step the error is wrong.",
        mistakes={
            "The error is unchanged.": error,
            "The ratio of the singular values has to be squared.": after(1 - shares.sqrt()),
            "The step leads uphill: the gradient is added.": after(1 + shares),
            "This is what is gone, not what is left.": after(shares),
            "The rate is one over the square of the *largest* singular value.": after(
                1 - (values / values[-1]).square()
            ),
            "The rate is 1. It should be one over the square of the largest singular value.": after(
                1 - values.square()
            ),
            "The factors are right, but these are the coordinates along the singular vectors. Turn "
            "back.": (1 - shares) * (right @ error),
            "The singular vectors are taken by columns. svd returns them as rows.": (1 - shares)
            * (right.mT @ error)
            @ right.mT,
        },
    )
    many = 20_000
    attempt.expect_close(
        asked(many),
        after((1 - shares) ** many),
        f"After {many} steps the error is wrong, though after one it is right.",
        mistakes={
            "Each step multiplies. You multiplied the decrease of one by their number.": after(
                1 - many * shares
            ),
            "One step is taken, whatever steps is.": after(1 - shares),
            "After so many steps only the weakest direction is left, and it is left: do not end "
            "early.": torch.zeros_like(error),
        },
    )
