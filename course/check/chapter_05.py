"""Chapter 5: mixing tokens, how alike they are, a gate over them, and mixing on another grid."""

import math

import torch
from torch import Tensor
from torch.nn.functional import gelu

from course.check.attempt import Attempt, Draw
from course.check.chapter_03 import line, plane
from course.check.chapter_04 import normed
from course.check.exercise import exercise


def size(x: Tensor) -> Tensor:
    """The Frobenius norm of each image, [batch]."""
    return x.square().sum((1, 2)).sqrt()


@exercise("batch, tokens, dim", seed=4)
def mix_tokens(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim] and two linear maps over the tokens -> as x."""
    batch, tokens, dim, hidden = 2, 4, 3, 5
    x = normal(batch, tokens, dim)
    up, up_bias = normal(hidden, tokens), normal(hidden)
    down, down_bias = normal(tokens, hidden), normal(tokens)
    outcomes = {
        down_bias[:, None].expand(batch, tokens, dim): "With down all zeros, every feature of "
        "token i should be down_bias[i].",
        0 * x: "With down all zeros the result should be down_bias. It is not used.",
        x + down_bias[:, None]: "x is added. The residual is added outside, by the block.",
        gelu(down_bias)[:, None].expand(batch, tokens, dim): "A GELU is applied to the result. It "
        "belongs only between the two linear maps.",
    }
    last = {"cannot be multiplied": "Bring the tokens to the last axis first: x.mT."}
    attempt.expect_close(attempt(x, up, up_bias, 0 * down, down_bias, explain=last), outcomes)
    u = up @ x + up_bias[:, None]  # [batch, hidden, dim]
    tanh = gelu(u, approximate="tanh")

    def layer(hidden: Tensor) -> Tensor:
        return down @ hidden + down_bias[:, None]

    outcomes = {
        layer(gelu(u)): "The result is wrong although its shape is right. The tokens should be on "
        "the last axis while both linear maps are applied, with the GELU between.",
        layer(u): "There is no GELU between the two linear maps.",
        layer(u.relu()): "This is a ReLU, not a GELU.",
        layer(tanh): "This is the approximate GELU. Use the exact one, gelu(u).",
        layer(gelu(up @ x)): "up_bias is not used.",
        layer(gelu(up @ x) + up_bias[:, None]): "up_bias is added after the GELU. It belongs to "
        "the first linear map.",
    }
    attempt.expect_close(attempt(x, up, up_bias, down, down_bias), outcomes)
    square = normal(2, 3, 3)
    up, down = normal(hidden, 3), normal(3, hidden)
    u = up @ square + up_bias[:, None]
    outcomes = {
        down @ gelu(u): "With as many tokens as features the result is wrong.",
        gelu(square @ up.T + up_bias) @ down.T: "The features of each token are mixed, as in an "
        "ordinary MLP. Transpose first.",
        (down @ gelu(u)).mT: "The result should be transposed back to [batch, tokens, dim].",
    }
    attempt.expect_close(attempt(square, up, up_bias, down, 0 * up_bias[:3]), outcomes)


@exercise("batch", seed=0)
def distance_from_alike(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim] -> [batch]."""
    x = 2 * normal(3, 4, 5) + 1
    away = x - x.mean(1, keepdim=True)
    outcomes = {
        size(away) / size(x): "For tokens drawn at random the distance is wrong.",
        size(x - x.mean(2, keepdim=True)) / size(x): "The mean is taken over the features of each "
        "token. It should be the mean token, over axis 1.",
        size(x - x.mean((1, 2), keepdim=True)) / size(x): "One mean is taken for a whole image. "
        "The mean token has a mean for each feature.",
        size(x - x.mean(0)) / size(x): "The mean is taken over the batch. Each image has its own.",
        size(away): "The norm of the difference should be divided by the norm of x.",
        (size(away) / size(x)) ** 2: "The root is missing: a norm is the root of a sum of squares.",
        size(away) / size(x - away): "You divide by the norm of the repeated mean token. Divide by "
        "the norm of x.",
        (away.norm(dim=2) / x.norm(dim=2)).mean(1): "You take a ratio for each token and then the "
        "mean of them. Take one norm over all tokens.",
        (away.norm() / x.norm()).expand(3): "All images share one norm. Each has its own.",
        size(x - away) / size(x): "You return the size of the mean token, not of the rest.",
    }
    attempt.expect_close(attempt(x), outcomes)


@exercise("batch, tokens, half", seed=1)
def spatial_gate(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], weight [tokens, tokens], bias [tokens], eps -> half as wide."""
    batch, tokens, half = 2, 3, 5
    x = 2 * normal(batch, tokens, 2 * half) + 1
    u, v = x[..., :half], x[..., half:]
    zeros = torch.zeros(tokens)
    identity = torch.eye(tokens)
    outcomes = {
        u: "With a table of zeros and a bias of ones, the result should be U, the first half of "
        "the features.",
        v: "The halves are swapped: U, which is multiplied, is the first half.",
        normed(u, -1, 0.1): "U is normed. Only V is.",
        0 * u: "The bias is not used, or it is added before the table is applied.",
        0 * u + 1: "The bias is added after U is multiplied. It belongs to the gate.",
    }
    tall = {"must match the size": "The bias has a number for each token: bias[:, None]."}
    attempt.expect_close(attempt(x, 0 * identity, zeros + 1, 0.1, explain=tall), outcomes)
    gate = normed(v, -1, 0.1)
    outcomes = {
        u * gate: "With an identity table and no bias, the result should be U times the normed V.",
        u * v: "V is not normed.",
        u * normed(v, 1, 0.1): "V is normed over tokens. Norm it over its features, the last axis.",
        u * normed(x, -1, 0.1)[..., half:]: "All features are normed before the cut. Norm only V.",
        u + gate: "U is added, not multiplied.",
        gate: "U is missing: the gate multiplies it.",
        u * normed(v, -1, 0.1, fewer=1): "The variance is divided by its number minus one. In "
        "Tensor.var, correction=0.",
        u * normed(v, -1, 0): "eps is not used. It is added to the variance, inside the root.",
        u * (v - v.mean(-1, keepdim=True)) / (v.std(-1, correction=0)[..., None] + 0.1): "eps is "
        "added to the standard deviation. It belongs inside the root.",
    }
    attempt.expect_close(attempt(x, identity, zeros, 0.1), outcomes)
    weight, bias = normal(tokens, tokens), normal(tokens)
    outcomes = {
        u * (weight @ gate): "The table is used in a wrong way. Token i of the result should be "
        "the sum over j of weight[i, j] times token j of the normed V.",
        u * (weight.T @ gate): "The table is transposed: row i holds the weights of token i.",
        u * normed(weight @ v, -1, 0.1): "The tokens of V are mixed before the norm. Norm first.",
        (weight @ u) * (weight @ gate): "All features are mixed, those of U too.",
    }
    attempt.expect_close(attempt(x, weight, zeros, 0.1), outcomes)
    message = "The bias is used in a wrong way. Its entry i is added to all features of token i."
    outcomes = {u * (weight @ gate + bias[:, None]): message}
    attempt.expect_close(attempt(x, weight, bias, 0.1), outcomes)


@exercise("batch, tokens, dim", seed=3)
def resized_mixing(attempt: Attempt, normal: Draw) -> None:
    """x and a mixing layer's four parameters, the old grid and the new -> as x."""
    batch, dim, hidden, old, new = 2, 5, 7, (2, 3), (4, 5)
    before, after = math.prod(old), math.prod(new)
    up, up_bias = normal(hidden, before), normal(hidden)
    down, down_bias = normal(before, hidden), normal(before)
    x_old, x = normal(batch, before, dim), normal(batch, after, dim)
    share = before / after

    def layer(x, up, down, bias=down_bias, up_bias=up_bias):
        return (gelu(x.mT @ up.T + up_bias) @ down.T + bias).mT

    plain = layer(x_old, up, down)
    u = x_old.mT @ up.T + up_bias
    outcomes = {
        plain: "With new = old the result should be that of the mixing layer itself.",
        layer(x_old, up, down, up_bias=0 * up_bias): "With new = old: up_bias is not used.",
        layer(x_old, up, down, 0 * down_bias): "With new = old: down_bias is not used.",
        (u @ down.T + down_bias).mT: "With new = old: there is no GELU.",
        x_old + plain: "With new = old: x is added. The stream is not part of the layer.",
    }
    attempt.expect_close(attempt(x_old, up, up_bias, down, down_bias, old, old), outcomes)
    finer = plane(old, new)
    kinds = {
        finer: "With all other weights zero, the result should be down_bias, resampled.",
        plane(old, new, corners=True): "The corners are aligned. Use align_corners=False.",
        plane(old, new, nearest=True): "Each new position takes its nearest old one. Interpolate "
        "bilinearly.",
        line(before, after): "The tokens are interpolated along their list, in one dimension. They "
        "lie on a grid of rows and columns.",
        torch.kron(line(3, 5), line(2, 4)): "Rows and columns of the grids are swapped.",
        share * finer: "down_bias is multiplied by old tokens / new tokens. Only up is.",
    }
    outcomes = {
        (kind @ down_bias)[:, None].expand(batch, after, dim): message
        for kind, message in kinds.items()
    }
    attempt.expect_close(attempt(x, 0 * up, 0 * up_bias, 0 * down, down_bias, old, new), outcomes)
    up_fine = share * up @ finer.T
    bias = finer @ down_bias
    ones = torch.ones(after, hidden)
    none = 0 * bias
    outcomes = {
        layer(x, up_fine, ones, none): "The resampled up is wrong. (down is all ones here, and "
        "down_bias zero.)",
        layer(x, up_fine / share, ones, none): "Multiply up by old tokens / new tokens.",
        layer(x, up_fine / share**2, ones, none): "up is multiplied by new tokens / old tokens. It "
        "is the other way round.",
        layer(x, up_fine, ones, none, share * up_bias): "The factor old tokens / new tokens is for "
        "up alone: you give it to up_bias, too.",
        layer(x, up_fine, share * ones, none): "down is multiplied by old tokens / new tokens. "
        "Only up is.",
    }
    attempt.expect_close(attempt(x, up, up_bias, 0 * down + 1, 0 * down_bias, old, new), outcomes)
    message = "The resampled down is wrong. Each of its columns is a small image."
    outcomes = {layer(x, up_fine, finer @ down, bias): message}
    attempt.expect_close(attempt(x, up, up_bias, down, down_bias, old, new), outcomes)
