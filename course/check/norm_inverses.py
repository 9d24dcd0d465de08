"""Exercises of chapter 14 about inputs that a norm did not tell apart, and those that it did."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.encoder_parts import normed
from course.check.exercise import exercise

CHAPTER = "14_what_layernorm_forgets"


@exercise(CHAPTER)
def with_statistics(attempt: Attempt) -> None:
    """y [batch, tokens, dim], gamma [dim], beta [dim], mean, std [batch, tokens, 1] -> as y."""
    shape = dict(batch=2, tokens=3, dim=5)
    normal = normal_draws(seed=0)
    z = normed(normal(*shape.values()))
    ones, zeros = torch.ones(5), torch.zeros(5)
    mean, std = normal(2, 3, 1), normal(2, 3, 1).abs() + 0.5
    attempt.expect_close(
        attempt(z, ones, zeros, 0 * mean, std, shape=shape),
        z * std,
        "With gamma = 1, beta = 0 and mean = 0 the result should have the deviation std.",
        mistakes={
            "std is not used.": z,
            "You multiply by std squared: the variance.": z * std.square(),
            "You multiply by the root of std.": z * std.sqrt(),
            "You divide by std. The norm has divided by it.": z / std,
        },
    )
    attempt.expect_close(
        attempt(z, ones, zeros, mean, std, shape=shape),
        z * std + mean,
        "With gamma = 1 and beta = 0 the result should have mean and deviation as given.",
        mistakes={
            "mean is not used.": z * std,
            "mean is multiplied by std too. It is added last.": (z + mean) * std,
        },
    )
    gamma, beta = normal(5).abs() + 0.5, normal(5)
    y = z * gamma + beta
    attempt.expect_close(
        attempt(y, gamma, beta, mean, std, shape=shape),
        z * std + mean,
        "With gamma and beta the result is wrong. Undo them first.",
        mistakes={
            "gamma and beta are not undone.": y * std + mean,
            "beta is not undone.": y / gamma * std + mean,
            "gamma is not undone.": (y - beta) * std + mean,
            "You divide by gamma before you subtract beta. The norm adds beta last, so it is the "
            "first to go.": (y / gamma - beta) * std + mean,
            "You apply gamma and beta once more. They are to be undone.": (
                (y * gamma + beta) * std + mean
            ),
        },
    )


def rms_normed(x: Tensor, eps: float) -> Tensor:
    """x over the root of its mean square plus eps, token by token."""
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


@exercise(CHAPTER)
def rms_input(attempt: Attempt) -> None:
    """y [batch, tokens, dim], gamma [dim], eps -> as y."""
    shape = dict(batch=2, tokens=3, dim=5)
    normal = normal_draws(seed=1)
    eps = 0.5
    x = normal(*shape.values()) + 0.5
    square = x.square().mean(-1, keepdim=True)
    size = (square + eps).sqrt()
    w = x / size
    ones, gamma = torch.ones(5), normal(5).abs() + 0.5
    attempt.expect_close(
        attempt(w, ones, eps, shape=shape),
        x,
        "With gamma = 1 the result is not the norm's input.",
        mistakes={
            "The output comes back unchanged.": w,
            "You multiply by the root mean square of the input. The norm divided by the root of "
            "that square plus eps.": w * square.sqrt(),
            "You multiply by the mean square plus eps. The norm divided by its root.": w * size**2,
            "The output is normed once more, not undone.": rms_normed(w, eps),
            "You took the variance of w. An RMS norm subtracts no mean: its size is the mean "
            "square.": w * (eps / (1 - w.var(-1, correction=0, keepdim=True))).sqrt(),
            "You took the sum of squares where the mean belongs.": (
                w * (eps / (1 - w.square().sum(-1, keepdim=True)).abs()).sqrt()
            ),
            "All tokens have one scale. Each has its own.": w
            * (eps / (1 - w.square().mean())).sqrt(),
        },
    )
    attempt.expect_close(
        attempt(w * gamma, gamma, eps, shape=shape),
        x,
        "With a gamma the result is wrong. Undo it first: the scale is that of y / gamma.",
        mistakes={
            "gamma is undone at the end alone. It must be gone before you take the mean square.": (
                w * (eps / (1 - (w * gamma).square().mean(-1, keepdim=True)).abs()).sqrt()
            ),
            "gamma is undone for the scale alone.": x * gamma,
            "You multiply by gamma.": x * gamma.square(),
        },
    )
    small = 0.1
    attempt.expect_close(
        attempt(x / (square + small).sqrt(), ones, small, shape=shape),
        x,
        f"With eps = {small} the result is wrong, though with {eps} it was right.",
    )


def patches_of(w: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
    """Least squares, one token after the other: patches q and scale a with W q - a w = -t."""
    found = torch.empty(*w.shape[:2], weight.shape[1])
    for b, i in torch.cartesian_prod(*map(torch.arange, w.shape[:2])):
        system = torch.cat([weight, -w[b, i, :, None]], 1)  # [dim, n + 1]
        found[b, i] = -(torch.linalg.pinv(system) @ offset[i])[:-1]
    return found


@exercise(CHAPTER)
def patches_behind_rms(attempt: Attempt) -> None:
    """y [batch, tokens, dim], gamma [dim], weight [dim, n], offset [tokens, dim] -> patches."""
    batch, tokens, dim, n = 2, 3, 11, 4
    shape = dict(batch=batch, tokens=tokens, n=n)
    normal = normal_draws(seed=2)
    q, weight, offset = normal(batch, tokens, n), normal(dim, n), normal(tokens, dim)
    ones, gamma = torch.ones(dim), normal(dim).abs() + 0.5
    inverse = torch.linalg.pinv(weight).T  # [dim, n]

    same = offset[:1].repeat(tokens, 1)
    x = q @ weight.T + same
    w = rms_normed(x, 0.0)
    attempt.expect_close(
        attempt(w, ones, weight, same, shape=shape),
        q,
        "With gamma = 1 and one offset for all tokens the patches are wrong.",
        mistakes={
            "The scale is taken as 1. Each token was divided by a size of its own, and its offset "
            "tells which.": (w - same) @ inverse,
            "The offset is not subtracted from the tokens.": x @ inverse,
            "The offset is not subtracted, and the scale is taken as 1.": w @ inverse,
            "These are the negatives of the patches: a sign in your equations is wrong.": -q,
            "These are the patches over the size of their token. Multiply by it.": (
                q / x.square().mean(-1, keepdim=True).sqrt()
            ),
        },
    )
    w = rms_normed(q @ weight.T + offset, 0.0)
    attempt.expect_close(
        attempt(w, ones, weight, offset, shape=shape),
        q,
        "With offsets that differ from token to token the patches are wrong.",
        mistakes={
            "The first token's offset is used for all.": patches_of(w, weight, same),
            "The offsets' mean is used for all tokens.": patches_of(
                w, weight, offset.mean(0).expand(tokens, dim)
            ),
        },
    )
    attempt.expect_close(
        attempt(w * gamma, gamma, weight, offset, shape=shape),
        q,
        "With a gamma the patches are wrong. Divide y by it first.",
        mistakes={
            "gamma is not used.": patches_of(w * gamma, weight, offset),
            "y is multiplied by gamma. Divide by it.": patches_of(w * gamma**2, weight, offset),
        },
    )
