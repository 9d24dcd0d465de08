"""Exercises of chapter 05 about tables of tokens: how alike they are, and a gate over them."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "05_mixer"


def size(x: Tensor) -> Tensor:
    """The Frobenius norm of each picture, [batch]."""
    return x.square().sum((1, 2)).sqrt()


@exercise(CHAPTER)
def distance_from_alike(attempt: Attempt) -> None:
    """x [batch, tokens, dim] -> [batch]."""
    batch, tokens, dim = 3, 4, 5
    shape = dict(batch=batch)
    normal = normal_draws(seed=0)
    x = 2 * normal(batch, tokens, dim) + 1
    away = x - x.mean(1, keepdim=True)
    attempt.expect_close(
        attempt(x, shape=shape),
        size(away) / size(x),
        "For tokens drawn at random the distance is wrong.",
        mistakes={
            "The mean is taken over the features of each token. It should be the mean token, over "
            "axis 1.": size(x - x.mean(2, keepdim=True)) / size(x),
            "One mean is taken for a whole picture. The mean token has a mean for each feature.": (
                size(x - x.mean((1, 2), keepdim=True)) / size(x)
            ),
            "The mean is taken over the batch. Each picture has its own mean token.": (
                size(x - x.mean(0)) / size(x)
            ),
            "The norm of the difference should be divided by the norm of x.": size(away),
            "The root is missing: a norm is the root of a sum of squares.": (
                (size(away) / size(x)) ** 2
            ),
            "The root is missing, and the norm of x, by which to divide.": size(away) ** 2,
            "The norms are summed over the batch. Each picture has its own.": (
                (away.norm() / x.norm()).expand(batch)
            ),
            "You divide by the norm of the repeated mean token. Divide by the norm of x.": (
                size(away) / size(x - away)
            ),
            "You take a share for each token and then the mean of them. Take one norm over all "
            "tokens.": (away.norm(dim=2) / x.norm(dim=2)).mean(1),
            "You return the size of the mean token, not of what differs from it.": (
                size(x - away) / size(x)
            ),
        },
    )


def normed(x: Tensor, axis: int, eps: float, fewer: int = 0) -> Tensor:
    """x without its mean and scale along an axis; ``fewer=1`` has the unbiased variance."""
    centred = x - x.mean(axis, keepdim=True)
    squares = centred.square().sum(axis, keepdim=True)
    return centred / (squares / (x.shape[axis] - fewer) + eps).sqrt()


@exercise(CHAPTER)
def spatial_gate(attempt: Attempt) -> None:
    """x [batch, tokens, dim], weight [tokens, tokens], bias [tokens], eps -> half as wide."""
    batch, tokens, half = 2, 3, 5
    shape = dict(batch=batch, tokens=tokens, half=half)
    normal = normal_draws(seed=1)
    x = 2 * normal(batch, tokens, 2 * half) + 1
    u, v = x[..., :half], x[..., half:]
    zeros, identity = torch.zeros(tokens), torch.eye(tokens)
    attempt.expect_close(
        attempt(x, 0 * identity, zeros + 1, 0.1, shape=shape),
        u,
        "With a table of zeros and a bias of ones, the result should be U, the first half of the "
        "features.",
        mistakes={
            "The halves have changed places: U, which is multiplied, is the first half.": v,
            "The features are cut into even and odd ones. U is the first half of them.": x[
                ..., ::2
            ],
            "U is normed. Only V is.": normed(u, -1, 0.1),
            "The bias is not used, or it is added before the table is applied.": 0 * u,
            "The bias is added after U is multiplied. It belongs to the gate.": 0 * u + 1,
        },
    )
    gate = normed(v, -1, 0.1)
    attempt.expect_close(
        attempt(x, identity, zeros, 0.1, shape=shape),
        u * gate,
        "With the identity as table and no bias, the result should be U times the normed V.",
        mistakes={
            "V is not normed.": u * v,
            "V is normed over the tokens. Norm it over its features, the last axis.": (
                u * normed(v, 1, 0.1)
            ),
            "All features are normed before they are cut. Norm V alone.": (
                u * normed(x, -1, 0.1)[..., half:]
            ),
            "U is added, not multiplied.": u + gate,
            "U is missing: the gate multiplies it.": gate,
            "The variance is divided by its number less one. In Tensor.var, correction=0.": (
                u * normed(v, -1, 0.1, fewer=1)
            ),
            "eps is not used. It is added to the variance, inside the root.": u * normed(v, -1, 0),
            "eps is added to the standard deviation. It stands inside the root.": (
                u * (v - v.mean(-1, keepdim=True)) / (v.std(-1, correction=0)[..., None] + 0.1)
            ),
        },
    )
    weight, bias = normal(tokens, tokens), normal(tokens)
    attempt.expect_close(
        attempt(x, weight, zeros, 0.1, shape=shape),
        u * (weight @ gate),
        "The table is used in a wrong way. Token i of the result should be the sum over j of "
        "weight[i, j] times token j of the normed V.",
        mistakes={
            "The table is transposed: row i holds the weights of token i.": u * (weight.T @ gate),
            "The tokens of V are mixed before they are normed. Norm first.": (
                u * normed(weight @ v, -1, 0.1)
            ),
            "All features are mixed, those of U too.": (weight @ u) * (weight @ gate),
        },
    )
    attempt.expect_close(
        attempt(x, weight, bias, 0.1, shape=shape),
        u * (weight @ gate + bias[:, None]),
        "The bias is used in a wrong way. Its entry i is added to all features of token i.",
    )
