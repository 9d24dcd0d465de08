"""Chapter 5: mixing tokens, how alike they are, a gate over them, and mixing on another grid."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.chapter_04 import normed
from course.check.exercise import exercise


def size(x: Tensor) -> Tensor:
    """The Frobenius norm of each image, [batch]."""
    return x.square().sum((1, 2)).sqrt()


@exercise
def mix_tokens(attempt: Attempt) -> None:
    """x [batch, tokens, dim] and two linear maps over the tokens -> as x."""
    batch, tokens, dim, hidden = 2, 4, 3, 5
    shape = dict(batch=batch, tokens=tokens, dim=dim)
    normal = normal_draws(seed=4)
    x = normal(batch, tokens, dim)
    up, up_bias = normal(hidden, tokens), normal(hidden)
    down, down_bias = normal(tokens, hidden), normal(tokens)
    outcomes = {
        "With down all zeros, every feature of token i should be down_bias[i].": (
            down_bias[:, None].expand(batch, tokens, dim)
        ),
        "With down all zeros the result should be down_bias. It is not used.": 0 * x,
        "x is added. The residual is added outside, by the block.": x + down_bias[:, None],
        "A GELU is applied to the result. It belongs only between the two linear maps.": (
            gelu(down_bias)[:, None].expand(batch, tokens, dim)
        ),
    }
    attempt.expect_close(attempt(x, up, up_bias, 0 * down, down_bias, shape=shape), outcomes)
    u = up @ x + up_bias[:, None]  # [batch, hidden, dim]
    tanh = F.gelu(u, approximate="tanh")

    def layer(hidden: Tensor) -> Tensor:
        return down @ hidden + down_bias[:, None]

    outcomes = {
        "The result is wrong although its shape is right. The tokens should be on the last axis "
        "while both linear maps are applied, with the GELU between.": layer(gelu(u)),
        "There is no GELU between the two linear maps.": layer(u),
        "This is a ReLU, not a GELU.": layer(u.relu()),
        "This is the approximate GELU. Use the exact one, F.gelu(u).": layer(tanh),
        "up_bias is not used.": layer(gelu(up @ x)),
        "up_bias is added after the GELU. It belongs to the first linear map.": layer(
            gelu(up @ x) + up_bias[:, None]
        ),
    }
    attempt.expect_close(attempt(x, up, up_bias, down, down_bias, shape=shape), outcomes)
    square = normal(2, 3, 3)
    up, down = normal(hidden, 3), normal(3, hidden)
    u = up @ square + up_bias[:, None]
    outcomes = {
        "With as many tokens as features the result is wrong.": down @ gelu(u),
        "The features of each token are mixed, as in an ordinary MLP. Transpose first.": (
            gelu(square @ up.T + up_bias) @ down.T
        ),
        "The result should be transposed back to [batch, tokens, dim].": (down @ gelu(u)).mT,
    }
    attempt.expect_close(
        attempt(square, up, up_bias, down, 0 * up_bias[:3], shape=dict(batch=2, tokens=3, dim=3)),
        outcomes,
    )


@exercise
def distance_from_alike(attempt: Attempt) -> None:
    """x [batch, tokens, dim] -> [batch]."""
    batch, tokens, dim = 3, 4, 5
    shape = dict(batch=batch)
    normal = normal_draws(seed=0)
    x = 2 * normal(batch, tokens, dim) + 1
    away = x - x.mean(1, keepdim=True)
    outcomes = {
        "For tokens drawn at random the distance is wrong.": size(away) / size(x),
        "The mean is taken over the features of each token. It should be the mean token, over axis "
        "1.": size(x - x.mean(2, keepdim=True)) / size(x),
        "One mean is taken for a whole image. The mean token has a mean for each feature.": (
            size(x - x.mean((1, 2), keepdim=True)) / size(x)
        ),
        "The mean is taken over the batch. Each image has its own mean token.": (
            size(x - x.mean(0)) / size(x)
        ),
        "The norm of the difference should be divided by the norm of x.": size(away),
        "The root is missing: a norm is the root of a sum of squares.": (size(away) / size(x)) ** 2,
        "The root is missing, and the norm of x, by which to divide.": size(away) ** 2,
        "The norms are summed over the batch. Each image has its own.": (
            (away.norm() / x.norm()).expand(batch)
        ),
        "You divide by the norm of the repeated mean token. Divide by the norm of x.": (
            size(away) / size(x - away)
        ),
        "You take a ratio for each token and then the mean of them. Take one norm over all "
        "tokens.": (away.norm(dim=2) / x.norm(dim=2)).mean(1),
        "You return the size of the mean token, not of what differs from it.": (
            size(x - away) / size(x)
        ),
    }
    attempt.expect_close(attempt(x, shape=shape), outcomes)


@exercise
def spatial_gate(attempt: Attempt) -> None:
    """x [batch, tokens, dim], weight [tokens, tokens], bias [tokens], eps -> half as wide."""
    batch, tokens, half = 2, 3, 5
    shape = dict(batch=batch, tokens=tokens, half=half)
    normal = normal_draws(seed=1)
    x = 2 * normal(batch, tokens, 2 * half) + 1
    u, v = x[..., :half], x[..., half:]
    zeros = torch.zeros(tokens)
    identity = torch.eye(tokens)
    outcomes = {
        "With a table of zeros and a bias of ones, the result should be U, the first half of the "
        "features.": u,
        "The halves are swapped: U, which is multiplied, is the first half.": v,
        "The features are cut into even and odd ones. U is the first half of them.": x[..., ::2],
        "U is normed. Only V is.": normed(u, -1, 0.1),
        "The bias is not used, or it is added before the table is applied.": 0 * u,
        "The bias is added after U is multiplied. It belongs to the gate.": 0 * u + 1,
    }
    attempt.expect_close(attempt(x, 0 * identity, zeros + 1, 0.1, shape=shape), outcomes)
    gate = normed(v, -1, 0.1)
    outcomes = {
        "With the identity as table and no bias, the result should be U times the normed V.": (
            u * gate
        ),
        "V is not normed.": u * v,
        "V is normed over the tokens. Norm it over its features, the last axis.": (
            u * normed(v, 1, 0.1)
        ),
        "All features are normed before they are cut. Norm only V.": (
            u * normed(x, -1, 0.1)[..., half:]
        ),
        "U is added, not multiplied.": u + gate,
        "U is missing: the gate multiplies it.": gate,
        "The variance is divided by its number minus one. In Tensor.var, correction=0.": (
            u * normed(v, -1, 0.1, fewer=1)
        ),
        "eps is not used. It is added to the variance, inside the root.": u * normed(v, -1, 0),
        "eps is added to the standard deviation. It belongs inside the root.": (
            u * (v - v.mean(-1, keepdim=True)) / (v.std(-1, correction=0)[..., None] + 0.1)
        ),
    }
    attempt.expect_close(attempt(x, identity, zeros, 0.1, shape=shape), outcomes)
    weight, bias = normal(tokens, tokens), normal(tokens)
    outcomes = {
        "The table is used in a wrong way. Token i of the result should be the sum over j of "
        "weight[i, j] times token j of the normed V.": u * (weight @ gate),
        "The table is transposed: row i holds the weights of token i.": u * (weight.T @ gate),
        "The tokens of V are mixed before they are normed. Norm first.": (
            u * normed(weight @ v, -1, 0.1)
        ),
        "All features are mixed, those of U too.": (weight @ u) * (weight @ gate),
    }
    attempt.expect_close(attempt(x, weight, zeros, 0.1, shape=shape), outcomes)
    outcomes = {
        "The bias is used in a wrong way. Its entry i is added to all features of token i.": (
            u * (weight @ gate + bias[:, None])
        ),
    }
    attempt.expect_close(attempt(x, weight, bias, 0.1, shape=shape), outcomes)


def line(old: int, new: int, corners: bool = False, nearest: bool = False) -> Tensor:
    """Linear interpolation from `old` to `new` points, as a table [new, old]."""
    table = torch.zeros(new, old)
    for i in range(new):
        at = i * (old - 1) / max(new - 1, 1) if corners else (i + 0.5) * old / new - 0.5
        if nearest:
            table[i, math.floor(i * old / new)] = 1.0
            continue
        at = min(max(at, 0.0), old - 1.0)
        low = math.floor(at)
        table[i, low] += 1 - (at - low)
        table[i, min(low + 1, old - 1)] += at - low
    return table


def plane(old: tuple[int, int], new: tuple[int, int], **kind: bool) -> Tensor:
    """Bilinear interpolation of a grid in reading order, [new tokens, old tokens]."""
    return torch.kron(*(line(a, b, **kind) for a, b in zip(old, new, strict=True)))


def gelu(u: Tensor) -> Tensor:
    return u * (1 + torch.erf(u / math.sqrt(2))) / 2


@exercise
def resized_mixing(attempt: Attempt) -> None:
    """x and a mixing layer's four parameters, the old grid and the new -> as x."""
    batch, dim, hidden, old, new = 2, 5, 7, (2, 3), (4, 5)
    before, after = math.prod(old), math.prod(new)
    normal = normal_draws(seed=3)
    up, up_bias = normal(hidden, before), normal(hidden)
    down, down_bias = normal(before, hidden), normal(before)
    x_old, x = normal(batch, before, dim), normal(batch, after, dim)
    share = before / after
    shape = dict(batch=batch, tokens=after, dim=dim)

    def layer(x, up, down, bias=down_bias, up_bias=up_bias):
        return (gelu(x.mT @ up.T + up_bias) @ down.T + bias).mT

    plain = layer(x_old, up, down)
    u = x_old.mT @ up.T + up_bias
    tanh = F.gelu(u, approximate="tanh")
    outcomes = {
        "With new = old the result should be that of the mixing layer itself.": plain,
        "With new = old: up_bias is not used.": layer(x_old, up, down, up_bias=0 * up_bias),
        "With new = old: down_bias is not used.": layer(x_old, up, down, 0 * down_bias),
        "With new = old: there is no GELU.": ((u) @ down.T + down_bias).mT,
        "With new = old: this is a ReLU, not a GELU.": (u.relu() @ down.T + down_bias).mT,
        "With new = old: this is the approximate GELU. Use the exact one.": (
            (tanh @ down.T + down_bias).mT
        ),
        "With new = old: x is added. The stream is not part of the layer.": x_old + plain,
    }
    attempt.expect_close(
        attempt(x_old, up, up_bias, down, down_bias, old, old, shape=shape | {"tokens": before}),
        outcomes,
    )
    finer = plane(old, new)
    swapped = torch.kron(line(3, 5), line(2, 4))  # the positions read as 3 rows of 2
    kinds = {
        "The corners are aligned. Use align_corners=False.": plane(old, new, corners=True),
        "Each new position takes its nearest old one. Interpolate bilinearly.": (
            plane(old, new, nearest=True)
        ),
        "The tokens are interpolated along their list, in one dimension. They lie on a grid of "
        "rows and columns.": line(before, after),
        "Rows and columns of the grids are swapped.": swapped,
        "down_bias is multiplied by old tokens / new tokens. Only up is.": share * finer,
    }
    outcomes = {
        "With all other weights zero, the result should be down_bias, resampled.": (
            finer @ down_bias
        )[:, None].expand(batch, after, dim)
    } | (
        {
            said: (other @ down_bias)[:, None].expand(batch, after, dim)
            for said, other in kinds.items()
        }
    )
    attempt.expect_close(
        attempt(x, 0 * up, 0 * up_bias, 0 * down, down_bias, old, new, shape=shape), outcomes
    )
    up_fine = share * up @ finer.T
    down_fine = finer @ down
    bias = finer @ down_bias
    ones = torch.ones(after, hidden)
    none = 0 * bias
    outcomes = {
        "The resampled up is wrong. (down is all ones here, and down_bias zero.)": (
            layer(x, up_fine, ones, none)
        ),
        "up should be multiplied by old tokens / new tokens.": (
            layer(x, up_fine / share, ones, none)
        ),
        "up is multiplied by new tokens / old tokens. It is the other way round.": (
            layer(x, up_fine / share**2, ones, none)
        ),
        "The factor old tokens / new tokens is for up alone: you give it to up_bias, too.": (
            layer(x, up_fine, ones, none, share * up_bias)
        ),
        "down is multiplied by old tokens / new tokens. Only up is.": (
            layer(x, up_fine, share * ones, none)
        ),
    }
    attempt.expect_close(
        attempt(x, up, up_bias, 0 * down + 1, 0 * down_bias, old, new, shape=shape), outcomes
    )
    outcomes = {
        "The resampled down is wrong. Each of its columns is a small image.": (
            layer(x, up_fine, down_fine, bias)
        ),
    }
    attempt.expect_close(attempt(x, up, up_bias, down, down_bias, old, new, shape=shape), outcomes)
