"""Exercises of chapter 14 about the derivative of a norm, and what it forgets.

What is expected comes from Jacobians by autograd and from hand-made matrices.
"""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.encoder_parts import normed
from course.check.exercise import exercise

CHAPTER = "14_what_layernorm_forgets"


def centred(h: Tensor) -> Tensor:
    """h less its mean, token by token."""
    return h - h.mean(-1, keepdim=True)


@exercise(CHAPTER)
def norm_pullback(attempt: Attempt) -> None:
    """x [batch, tokens, dim], gamma [dim], eps, g [batch, tokens, dim] -> as x."""
    shape = dict(batch=2, tokens=3, dim=5)
    normal = normal_draws(seed=0)
    x, g = 2 * normal(*shape.values()) + 1, normal(*shape.values())
    gamma = normal(5)

    def expected(gamma: Tensor, eps: float, g: Tensor) -> Tensor:
        return torch.func.vjp(lambda x: normed(x, eps=eps) * gamma, x)[1](g)[0]

    ones = torch.ones(5)
    z = normed(x)
    variance = centred(x).square().mean(-1, keepdim=True)
    s = variance.sqrt()
    along = (z * g).mean(-1, keepdim=True)  # [batch, tokens, 1]
    attempt.expect_close(
        attempt(x, ones, 0.0, g, shape=shape),
        expected(ones, 0.0, g),
        "With gamma = 1 and eps = 0 the gradient is wrong.",
        mistakes={
            "You do not subtract the mean: the product with C is missing.": (g - z * along) / s,
            "What points along z is not taken away.": centred(g) / s,
            "The mean and the part along z are right, but the result is not divided by s.": (
                centred(g) - z * along
            ),
            "You divide by the variance, not by its root.": (centred(g) - z * along) / variance,
            "You multiply by s. The derivative of a division by s is divided by it.": (
                centred(g) - z * along
            )
            * s,
            "The dot product with z is not divided by dim.": (centred(g) - 5 * z * along) / s,
            "The part along z is added, not taken away.": (centred(g) + z * along) / s,
            "You take the part along x, not along z = (x - mean) / s.": (
                (centred(g) - x * (x * g).mean(-1, keepdim=True)) / s
            ),
        },
    )
    pulled = expected(ones, 0.0, g)
    attempt.expect_close(
        attempt(x, gamma, 0.0, g, shape=shape),
        expected(gamma, 0.0, g),
        "With a gamma the gradient is wrong.",
        mistakes={
            "gamma is not used.": pulled,
            "gamma multiplies the result. In the transposed product it comes first: it multiplies "
            "g.": pulled * gamma,
        },
    )
    wide = (variance + 0.5).sqrt()
    attempt.expect_close(
        attempt(x, ones, 0.5, g, shape=shape),
        expected(ones, 0.5, g),
        "With eps = 0.5 the gradient is wrong. eps is added to the variance, inside the root, also "
        "where z is made.",
        mistakes={
            "eps is not used.": pulled,
            "eps is used in the division, but z is made without it.": (centred(g) - z * along)
            / wide,
            "z is made with eps, but the division at the end lacks it.": pulled_with(x, g, wide)
            / s,
            "eps is added to the deviation. It stands inside the root.": (
                pulled_with(x, g, s + 0.5) / (s + 0.5)
            ),
        },
    )


def pulled_with(x: Tensor, g: Tensor, size: Tensor) -> Tensor:
    """The product with C - z z^T / dim, for z with this size as divisor."""
    z = centred(x) / size
    return centred(g) - z * (z * g).mean(-1, keepdim=True)


@exercise(CHAPTER)
def forgotten(attempt: Attempt) -> None:
    """x [dim], function [dim] -> [out], tolerance -> [dim, dim]."""
    dim = 6
    shape = {"dim": dim, "dim again": dim}
    normal = normal_draws(seed=1)
    x = normal(dim)
    left, right = (torch.linalg.qr(normal(dim, dim))[0] for _ in range(2))
    values = torch.tensor([5.0, 2.0, 1.0, 0.2, 0.0, 0.0])
    matrix = left @ torch.diag(values) @ right.T

    def onto(basis: Tensor) -> Tensor:
        return basis @ basis.T

    lost = onto(right[:, 4:])
    attempt.expect_close(
        attempt(x, lambda x: matrix @ x, 1e-4, shape=shape),
        lost,
        "For a linear function of rank 4, of 6 numbers, the projection is wrong.",
        mistakes={
            "This projects onto what is kept. The rest is asked for.": onto(right[:, :4]),
            "These directions live where the outputs live. Take the singular vectors on the side "
            "of the inputs.": onto(left[:, 4:]),
            "These directions span all outputs. Take the singular vectors of the inputs.": onto(
                left[:, :4]
            ),
        },
    )
    attempt.expect_close(
        attempt(x, lambda x: matrix @ x, 0.05, shape=shape),
        onto(right[:, 3:]),
        "With tolerance = 0.05 and singular values of 5, 2, 1, 0.2, 0 and 0 the last three "
        "directions count as forgotten.",
        mistakes={
            "tolerance is compared with the singular values as they are. It is a share of the "
            "largest.": lost,
        },
    )
    attempt.expect_close(
        attempt(x, lambda x: (matrix @ x)[:2].tanh(), 1e-4, shape=shape),
        torch.eye(dim) - row_space((1 - (matrix @ x)[:2].tanh().square())[:, None] * matrix[:2]),
        "Of a function from 6 numbers to 2 four directions are forgotten, though its Jacobian has "
        "two singular values only.",
        mistakes={
            "Nothing comes back of the directions without a singular value.": torch.zeros(dim, dim),
        },
    )
    z = normed(x)
    attempt.expect_close(
        attempt(x, lambda x: normed(x), 1e-4, shape=shape),
        torch.full((dim, dim), 1 / dim) + torch.outer(z, z) / dim,
        "A layer norm with eps = 0 forgets the direction of ones and that of z.",
    )


def row_space(matrix: Tensor) -> Tensor:
    """The projection onto the span of the rows, which are independent."""
    return matrix.T @ torch.linalg.solve(matrix @ matrix.T, matrix)
