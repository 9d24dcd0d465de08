"""Exercises of chapter 12 about methods that know the curvature: Gauss-Newton and L-BFGS."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "12_inverting_representations"


@exercise(CHAPTER)
def gauss_newton_step(attempt: Attempt) -> None:
    """x [n], target [m], function [n] -> [m] -> [n]."""
    shape = dict(n=3)
    normal = normal_draws(seed=0)
    x, a, matrix, offset = normal(3), normal(3), normal(5, 3), normal(5)

    def linear(x: Tensor) -> Tensor:
        return matrix @ x + offset

    left = linear(a) - linear(x)  # [m]
    attempt.expect_close(
        attempt(x, linear(a), linear, shape=shape),
        a,
        "For a linear function and a target that it can give, one step must arrive.",
        mistakes={
            "x comes back unchanged.": x,
            "This is a step of gradient descent, along the transposed Jacobian. Solve for the "
            "step.": x + matrix.T @ left,
            "The step leads away from the target: its sign is wrong.": 2 * x - a,
            "The step itself is returned. Add it to x.": a - x,
            "You solve for the target, not for what is left of it.": x
            + torch.linalg.pinv(matrix) @ linear(a),
        },
    )

    def curved(x: Tensor) -> Tensor:
        return linear(x).tanh()

    target = 0.5 * normal(5)
    slope = (1 - curved(x).square())[:, None] * matrix
    step = torch.linalg.solve(slope.T @ slope, slope.T @ (target - curved(x)))
    attempt.expect_close(
        attempt(x, target, curved, shape=shape),
        x + step,
        "For a function that is not linear, and a target that it cannot give, the step is wrong.",
        mistakes={
            "The Jacobian is not that at x.": x
            + torch.linalg.pinv((1 - offset.tanh().square())[:, None] * matrix)
            @ (target - curved(x)),
        },
    )


def by_matrices(gradient: Tensor, steps: Tensor, changes: Tensor, scale: Tensor) -> Tensor:
    """The direction from the BFGS formula itself, with a matrix for the inverse Hessian."""
    eye = torch.eye(len(gradient))
    inverse = scale * eye
    for s, y in zip(steps, changes, strict=True):
        v = eye - torch.outer(y, s) / (s @ y)
        inverse = v.T @ inverse @ v + torch.outer(s, s) / (s @ y)
    return -inverse @ gradient


@exercise(CHAPTER)
def lbfgs_direction(attempt: Attempt) -> None:
    """gradient [n], steps [k, n], changes [k, n] -> [n]."""
    n = 4
    shape = dict(n=n)
    normal = normal_draws(seed=1)
    root = normal(n, n)
    hessian = root @ root.T + torch.eye(n)
    gradient, steps = normal(n), normal(3, n)
    changes = steps @ hessian
    s, y = steps[-1:], changes[-1:]
    scale = (s[0] @ y[0]) / (y[0] @ y[0])
    expected = by_matrices(gradient, s, y, scale)
    one = torch.tensor(1.0)
    attempt.expect_close(
        attempt(gradient, s, y, shape=shape),
        expected,
        "With one pair the direction is wrong.",
        mistakes={
            "The sign is wrong: the direction leads downhill, -q.": -expected,
            "This is the direction of gradient descent.": -gradient,
            "gamma is missing between the loops.": by_matrices(gradient, s, y, one),
            "gamma is upside down.": by_matrices(gradient, s, y, 1 / scale),
            "gamma is (s . s) / (s . y). Here it is (s . y) / (y . y).": by_matrices(
                gradient, s, y, (s[0] @ s[0]) / (s[0] @ y[0])
            ),
            "steps and changes are exchanged.": by_matrices(gradient, y, s, scale),
        },
    )
    expected = by_matrices(gradient, steps, changes, scale)
    oldest = (steps[0] @ changes[0]) / (changes[0] @ changes[0])
    attempt.expect_close(
        attempt(gradient, steps, changes, shape=shape),
        expected,
        "With three pairs the direction is wrong, though with one it is right. The first loop goes "
        "from the newest pair to the oldest, the second back, with the alpha of each pair.",
        mistakes={
            "Only the newest pair is used.": by_matrices(gradient, s, y, scale),
            "The pairs are taken in the opposite order: the newest is the last.": by_matrices(
                gradient, steps.flip(0), changes.flip(0), scale
            ),
            "The order is opposite, and gamma is that of the oldest pair.": by_matrices(
                gradient, steps.flip(0), changes.flip(0), oldest
            ),
            "gamma is that of the oldest pair. Take the newest, the last.": by_matrices(
                gradient, steps, changes, oldest
            ),
        },
    )
