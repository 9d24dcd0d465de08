"""Chapter 13: inputs of a norm recovered from its output, and the norm's derivative."""

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from course.check.attempt import Attempt, Draw, NotYet, Outcomes, close
from course.check.chapter_04 import normed
from course.check.exercise import exercise


@exercise("batch, tokens, dim", seed=0)
def with_statistics(attempt: Attempt, normal: Draw) -> None:
    """y [batch, tokens, dim], gamma [dim], beta [dim], mean, std [batch, tokens, 1] -> as y."""
    z = normed(normal(2, 3, 5))
    ones, zeros = torch.ones(5), torch.zeros(5)
    mean, std = normal(2, 3, 1), normal(2, 3, 1).abs() + 0.5
    outcomes = {
        z * std: "With gamma = 1, beta = mean = 0 the result should have standard deviation std.",
        z: "std is not used.",
        z * std.square(): "You multiply by std squared: the variance.",
        z * std.sqrt(): "You multiply by the root of std, which is a root already.",
        std.expand_as(z): "mean and std are exchanged.",
        z / std: "You divide by std. The norm has divided by it.",
    }
    attempt.expect_close(attempt(z, ones, zeros, 0 * mean, std), outcomes)
    outcomes = {
        z * std + mean: "With gamma = 1 and beta = 0 the result should have mean and standard "
        "deviation as given.",
        z * std: "mean is not used.",
        (z + mean) * std: "mean is multiplied by std too. It is added last.",
    }
    attempt.expect_close(attempt(z, ones, zeros, mean, std), outcomes)
    gamma, beta = normal(5).abs() + 0.5, normal(5)
    y = z * gamma + beta
    outcomes = {
        z * std + mean: "With gamma and beta the result is wrong. Undo them first.",
        y * std + mean: "gamma and beta are not undone.",
        y / gamma * std + mean: "beta is not undone.",
        (y - beta) * std + mean: "gamma is not undone.",
        (y / gamma - beta) * std + mean: "You divide by gamma before you subtract beta. The norm "
        "adds beta last, so it is the first to go.",
        (y * gamma + beta) * std + mean: "You apply gamma and beta again. They are to be undone.",
    }
    attempt.expect_close(attempt(y, gamma, beta, mean, std), outcomes)


def rms_normed(x: Tensor, eps: float) -> Tensor:
    """x over the root of its mean square plus eps, token by token."""
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


@exercise("batch, tokens, dim", seed=1)
def rms_input(attempt: Attempt, normal: Draw) -> None:
    """y [batch, tokens, dim], gamma [dim], eps -> as y."""
    eps = 0.5
    x = normal(2, 3, 5) + 0.5
    square = x.square().mean(-1, keepdim=True)
    size = (square + eps).sqrt()
    w = x / size
    ones = torch.ones(5)
    gamma = normal(5).abs() + 0.5
    outcomes = {
        x: "With gamma = 1 the result is not the norm's input.",
        w: "This is y / gamma. The size that the norm divided by is missing.",
        w * square.sqrt(): "You multiply by the root mean square of the input. The norm divided by "
        "the root of that square plus eps.",
        w * (eps / (2 - eps / size**2)).sqrt(): "Take 1 less the mean square of w, not plus it.",
        w * size**2: "You multiply by the mean square plus eps. The norm divided by its root.",
        rms_normed(w, eps): "The output is normed once more, not undone.",
        w * (eps / (1 - w.var(-1, correction=0, keepdim=True))).sqrt(): "You took the variance of "
        "w. An RMS norm subtracts no mean: its size is the mean square.",
        w * (eps / (1 - w.square().mean())).sqrt(): "All tokens have one scale. Each has its own.",
    }
    message = (
        "The result contains NaN or infinity. Did you take the sum of the squares of w? 1 less "
        "their mean is positive."
    )
    attempt.expect_close(attempt(w, ones, eps, if_not_finite=message), outcomes)
    outcomes = {
        x: "With a gamma the result is wrong. Undo it first: the scale is that of y / gamma.",
        x * gamma: "gamma is undone only for the scale.",
        x * gamma.square(): "You multiply by gamma.",
    }
    message = "The result contains NaN or infinity. Undo gamma before you take the mean square."
    attempt.expect_close(attempt(w * gamma, gamma, eps, if_not_finite=message), outcomes)
    small = 0.1
    message = f"With eps = {small} the result is wrong, though with {eps} it was right."
    attempt.expect_close(attempt(x / (square + small).sqrt(), ones, small), {x: message})


def patches_of(w: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
    """Least squares for each token: patches q and scale a with W q - a w = -t."""
    system = torch.cat([weight.expand(*w.shape, -1), -w[..., None]], -1)  # [.., dim, n + 1]
    return -(torch.linalg.pinv(system) @ offset[..., None])[..., :-1, 0]


@exercise("batch, tokens, n", seed=2)
def patches_behind_rms(attempt: Attempt, normal: Draw) -> None:
    """y [batch, tokens, dim], gamma [dim], weight [dim, n], offset [tokens, dim] -> patches."""
    batch, tokens, dim, n = 2, 3, 11, 4
    q, weight, offset = normal(batch, tokens, n), normal(dim, n), normal(tokens, dim)
    ones = torch.ones(dim)
    gamma = normal(dim).abs() + 0.5
    inverse = torch.linalg.pinv(weight).T  # [dim, n]
    same = offset[:1].repeat(tokens, 1)
    x = q @ weight.T + same
    w = rms_normed(x, 0.0)
    root = x.square().mean(-1, keepdim=True).sqrt()
    outcomes = {
        q: "With gamma = 1 and one offset for all tokens the patches are wrong.",
        (w - same) @ inverse: "The scale is taken as 1. Each token was divided by its own size, "
        "and its offset tells which.",
        x @ inverse: "The offset is not subtracted from the tokens.",
        w @ inverse: "The offset is not subtracted, and the scale is taken as 1.",
        torch.cat([root, q[..., :-1]], -1): "The first number is the scale, not one of the patch.",
        -q: "These are the negatives of the patches: a sign in your equations is wrong.",
        q / root: "These are the patches over the size of their token. Multiply by it.",
    }
    attempt.expect_close(attempt(w, ones, weight, same), outcomes)
    w = rms_normed(q @ weight.T + offset, 0.0)
    outcomes = {
        q: "With offsets that differ from token to token the patches are wrong.",
        patches_of(w, weight, same): "The first token's offset is used for all.",
        patches_of(w, weight, offset.mean(0).expand(tokens, dim)): "The offsets' mean is used for "
        "all tokens.",
    }
    attempt.expect_close(attempt(w, ones, weight, offset), outcomes)
    outcomes = {
        q: "With a gamma the patches are wrong. Divide y by it first.",
        patches_of(w * gamma, weight, offset): "gamma is not used.",
        patches_of(w * gamma**2, weight, offset): "y is multiplied by gamma. Divide by it.",
    }
    attempt.expect_close(attempt(w * gamma, gamma, weight, offset), outcomes)


def centred(h: Tensor) -> Tensor:
    """h less its mean, token by token."""
    return h - h.mean(-1, keepdim=True)


class Autograd(TorchFunctionMode):
    """Counts the calls of autograd in a ``with`` block, those of torch.func too."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.calls += function in (torch.autograd.grad, Tensor.backward)
        return function(*args, **(kwargs or {}))


@exercise("batch, tokens, dim", seed=0)
def norm_pullback(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], gamma [dim], eps, g [batch, tokens, dim] -> as x."""
    x, g = 2 * normal(2, 3, 5) + 1, normal(2, 3, 5)
    gamma = normal(5)

    def expected(gamma: Tensor, eps: float) -> Tensor:
        return torch.func.vjp(lambda x: normed(x, eps=eps) * gamma, x)[1](g)[0]

    ones = torch.ones(5)
    z = normed(x)
    variance = centred(x).square().mean(-1, keepdim=True)
    s = variance.sqrt()
    along = (z * g).mean(-1, keepdim=True)  # [batch, tokens, 1]
    outcomes = {
        expected(ones, 0.0): "With gamma = 1 and eps = 0 the gradient is wrong.",
        g / s: "Mean and deviation depend on x: the products with C and z z^T are missing.",
        (g - z * along) / s: "You do not subtract the mean: the product with C is missing.",
        centred(g) / s: "The part along z is not subtracted.",
        centred(g) - z * along: "All is right but for the division by s.",
        (centred(g) - z * along) / variance: "You divide by the variance, not by its root.",
        (centred(g) - z * along) * s: "You multiply by s. Divide by it.",
        (centred(g) - 5 * z * along) / s: "The dot product with z is not divided by dim.",
        (centred(g) + z * along) / s: "The part along z is added, not subtracted.",
        (centred(g) - x * (x * g).mean(-1, keepdim=True)) / s: "You take the part along x, not "
        "along z = (x - mean) / s.",
    }
    attempt.expect_close(attempt(x, ones, 0.0, g, within=(meter := Autograd())), outcomes)
    if meter.calls:
        said = "The result is right, but by autograd. Write the product with C and z z^T out."
        raise NotYet(said)
    pulled = expected(ones, 0.0)
    outcomes = {
        expected(gamma, 0.0): "With a gamma the gradient is wrong.",
        pulled: "gamma is not used.",
        pulled * gamma: "gamma multiplies the result. Transposed, it comes first: it multiplies g.",
    }
    attempt.expect_close(attempt(x, gamma, 0.0, g), outcomes)
    wide = (variance + 0.5).sqrt()
    outcomes = {
        expected(ones, 0.5): "With eps = 0.5 the gradient is wrong. eps is added to the "
        "variance, inside the root, also where z is made.",
        pulled: "eps is not used.",
        (centred(g) - z * along) / wide: "eps is used in the division, but z is made without it.",
        pulled_with(x, g, wide) / s: "z is made with eps, but the division at the end lacks it.",
        pulled_with(x, g, s + 0.5) / (s + 0.5): "eps is added to the standard deviation. It "
        "belongs inside the root.",
    }
    attempt.expect_close(attempt(x, ones, 0.5, g), outcomes)


def pulled_with(x: Tensor, g: Tensor, size: Tensor) -> Tensor:
    """The product with C - z z^T / dim, for z with this size as divisor."""
    z = centred(x) / size
    return centred(g) - z * (z * g).mean(-1, keepdim=True)


@exercise("dim, dim again", seed=1)
def forgotten(attempt: Attempt, normal: Draw) -> None:
    """x [dim], function [dim] -> [out], tolerance -> [dim, dim]."""
    dim = 6
    x = normal(dim)
    left, right = (torch.linalg.qr(normal(dim, dim))[0] for _ in range(2))
    matrix = left * torch.tensor([5.0, 2.0, 1.0, 0.2, 0.0, 0.0]) @ right.T

    def onto(basis: Tensor) -> Tensor:
        return basis @ basis.T

    lost = onto(right[:, 4:])
    outcomes: Outcomes = {
        lost: "For a linear function of rank 4, of 6 numbers, the projection is wrong.",
        onto(right[:, :4]): "This projects onto the directions kept. Project onto the rest.",
        onto(left[:, 4:]): "These directions live where the outputs live. Take the singular "
        "vectors on the side of the inputs.",
        onto(left[:, :4]): "These span all outputs. Take the singular vectors of the inputs.",
    }
    found = attempt(x, lambda x: matrix @ x, 1e-4, shape={"dim": dim, "dim again": dim})
    # Signs of singular vectors are arbitrary, as are all vectors of singular value 0.
    said = "These are columns of V^T. Singular vectors are its rows: torch.linalg.svd returns V^T."
    if close(found[:4, :4].abs(), onto(right.T[:4, 4:]).abs()):
        raise NotYet(said)
    attempt.expect_close(found, outcomes)
    outcomes = {
        onto(right[:, 3:]): "With tolerance = 0.05 and singular values of 5, 2, 1, 0.2, 0 and 0 "
        "the last three directions count as forgotten.",
        lost: "tolerance is taken as it is. It is a fraction of the largest singular value.",
    }
    attempt.expect_close(attempt(x, lambda x: matrix @ x, 0.05), outcomes)
    rows = (1 - (matrix @ x)[:2].tanh().square())[:, None] * matrix[:2]
    kept = rows.pinverse() @ rows
    outcomes = {
        torch.eye(dim) - kept: "Of a function from 6 numbers to 2 four directions are forgotten, "
        "though its Jacobian has two singular values only.",
        0.0: "Nothing comes back of the directions without a singular value.",
    }
    attempt.expect_close(attempt(x, lambda x: (matrix @ x)[:2].tanh(), 1e-4), outcomes)
    z = normed(x)
    message = "A layer norm with eps = 0 forgets the direction of ones and that of z."
    attempt.expect_close(attempt(x, normed, 1e-4), {(1 + torch.outer(z, z)) / dim: message})
