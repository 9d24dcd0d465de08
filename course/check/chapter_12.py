"""Chapter 12: noise and principal components of a patch embedding, and a convolution's spectrum."""

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, Draw, close, normal_draws
from course.check.exercise import exercise
from course.check.memory import MemoryMeter


def matrix(values: list[float], rows: int, columns: int, seed: int) -> tuple[Tensor, Tensor]:
    """A matrix with these singular values, [rows, columns], and its right directions as rows."""
    normal = normal_draws(seed)
    left = torch.linalg.qr(normal(rows, rows))[0][:, : len(values)]
    right = torch.linalg.qr(normal(columns, columns))[0][:, : len(values)]
    return left * torch.tensor(values) @ right.T, right.T


@exercise()
def noise_gain(attempt: Attempt) -> None:
    """weight [dim, n] of rank n -> root mean square error of a patch for noise 1 in its token."""
    dim, n = 9, 5
    orthogonal, _ = matrix([1.0] * n, dim, n, seed=0)
    for scale in torch.tensor([1.0, 4.0]):
        outcomes = {
            1 / scale: f"With {n} singular values that all are {scale:g}, noise comes back divided "
            f"by {scale:g}, in every direction alike.",
            n**0.5 / scale: "The noise of the whole patch is returned. Divide the mean square over "
            "its n numbers.",
            (n / dim) ** 0.5 / scale: "The error is spread over the n numbers of the patch, not "
            "over the token's dim features.",
            1 / scale**2: "This is the mean square. Take its root.",
            scale: "This is what W does to noise in the patch. The way back divides by the "
            "singular values.",
        }
        attempt.expect_close(attempt(scale * orthogonal), outcomes)
    values = torch.tensor([3.0, 2.0, 1.0, 0.5, 0.25])
    weight, _ = matrix(values.tolist(), dim, n, seed=1)
    outcomes = {
        values.pow(-2).mean().sqrt(): "With singular values 3, 2, 1, 1/2, 1/4 the result is wrong.",
        1 / values.min(): "This is only the worst direction. Noise has all directions, and their "
        "squares are averaged.",
        (1 / values).mean(): "The factors 1 / sigma are averaged. For independent errors the "
        "squares add.",
    }
    attempt.expect_close(attempt(weight), outcomes)


@exercise(seed=2)
def components_needed(attempt: Attempt, normal: Draw) -> None:
    """patches [count, n], share -> the least number of principal components that hold it."""
    count, n = 400, 6
    variances = torch.tensor([16.0, 8.0, 4.0, 2.0, 1.0, 1.0])  # of 32: .5 .75 .875 .9375 .97 1
    scores = normal(count, n)
    scores = torch.linalg.qr(scores - scores.mean(0))[0]  # centred, orthonormal columns
    turn = torch.linalg.qr(normal(n, n))[0]
    patches = scores * variances.sqrt() @ turn.T

    def needs(patches: Tensor, share: float, right: int, mistakes: dict[int, str]) -> None:
        message = f"Components with variances 16, 8, 4, 2, 1, 1: {right} hold a share of {share:g}."
        attempt.expect_close(attempt(patches, share), {right: message} | mistakes)

    roots = "This counts by singular values. Variances are their squares."
    fewest = "One too few: what is counted holds less than the share. At least the share is asked."
    many = "One too many: with one component fewer the share is held already."
    needs(patches, 0.7, 2, {3: roots, 1: fewest, 6: "The smallest variances are counted first."})
    needs(patches, 0.9, 4, {3: fewest, 5: many})
    needs(patches, 0.45, 1, {0: fewest, 2: many})
    far = "A common mean of all patches is no variance: subtract it first."
    needs(patches + 30 * turn[:, 5], 0.7, 2, {1: far})


@exercise()
def forgotten_pattern(attempt: Attempt) -> None:
    """weight [dim, n] of rank dim <= n -> the pattern, [n], that LayerNorm hides."""
    for dim, n in ((5, 8), (6, 6)):
        weight, seen = matrix([2.0, 1.5, 1.2, 0.9, 0.7, 0.5][:dim], dim, n, seed=3)
        normal = normal_draws(seed=4)
        patch, offset = normal(n), normal(dim)
        pattern = attempt(weight, shape=dict(n=n))
        attempt.expect(pattern.any(), "The pattern is zero. Its length should be 1.")
        ones = torch.ones(dim)
        right = torch.linalg.pinv(weight) @ ones
        right = right / right.norm()
        attempt.expect(
            not close(pattern / pattern.norm(), F.normalize(weight.T @ ones, dim=0)),
            "This is W^T 1, along which the mean of the token grows fastest. It changes the "
            "deviations from the mean, too. Which pattern does W map to 1 itself?",
        )
        message = "W maps this pattern to zero: the embedding hides it, not the norm."
        attempt.expect((weight @ pattern).norm() > 1e-3 * pattern.norm(), message)
        before = F.layer_norm(weight @ patch + offset, (dim,))
        after = F.layer_norm(weight @ (patch + pattern) + offset, (dim,))
        outcomes = {
            before: "LayerNorm's output changes when the pattern is added to a patch. W should map "
            "the pattern to a vector whose entries are all equal."
        }
        attempt.expect_close(after, outcomes)
        attempt.expect(
            close(seen.T @ (seen @ pattern), pattern),
            "The pattern has a part that W maps to zero. Of all patterns that LayerNorm hides, "
            "take the one without it.",
        )
        attempt.expect_close(pattern.norm(), {1.0: "Its length should be 1."})
        message = "The token's features should grow by it; they fall: the sign is wrong."
        attempt.expect_close(pattern, {right: message})


@exercise("batch, n", seed=5)
def estimate_from_noisy(attempt: Attempt, normal: Draw) -> None:
    """tokens [batch, dim], weight, mean, covariance, noise -> patches [batch, n]."""
    batch, dim, n, noise = 3, 4, 7, 0.6
    weight = normal(dim, n) / n**0.5
    mean = normal(n)
    spread = normal(n, n) / n**0.5
    covariance = spread @ spread.T
    tokens = normal(batch, dim)
    eye, there = torch.eye(dim), weight @ mean

    def conditioned(covariance: Tensor, noise: float, each=eye, usual=there) -> Tensor:
        """From the joint covariance of token and patch, a Gaussian's conditional mean."""
        of_tokens = weight @ covariance @ weight.T + noise**2 * each
        gain = covariance @ weight.T @ torch.linalg.inv(of_tokens)
        return mean + (tokens - usual) @ gain.T

    right = conditioned(covariance, noise)
    about_zero = conditioned(covariance, noise, usual=0 * there)
    outcomes = {
        right: "The estimate is not the conditional mean of the patch given its noisy token.",
        conditioned(covariance, 0.0): "The noise is left out: this trusts the tokens entirely.",
        conditioned(covariance, noise**0.5): "The noise is a standard deviation. Tokens have its "
        "square as variance.",
        conditioned(covariance + noise**2 * torch.eye(n), 0.0): "The noise is in the tokens, not "
        "in the patches: add its variance to the covariance of the tokens.",
        right - mean: "The mean patch is not added back.",
        about_zero: "A token is compared with 0. The prior expects the mean patch's token, W mean.",
        conditioned(covariance, noise, torch.ones(dim, dim)): "The noise is added to every entry "
        "of the tokens' covariance. That of different features is independent: add it on the "
        "diagonal.",
    }
    attempt.expect_close(attempt(tokens, weight, mean, covariance, noise), outcomes)
    low = normal(n, 2)
    flat = low @ low.T  # patches that lie in a plane
    advice = "Do not invert the covariance of the patches; invert that of the tokens."
    message = f"With a covariance of rank 2 the result is not finite. {advice}"
    result = attempt(tokens, weight, mean, flat, noise, if_not_finite=message)
    message = f"With a covariance of rank 2, patches in a plane, the estimate is wrong. {advice}"
    attempt.expect_close(result, {conditioned(flat, noise): message})


@exercise("values", seed=6)
def convolution_values(attempt: Attempt, normal: Draw) -> None:
    """kernel [out, channels, k, k], size, stride -> all singular values, descending."""
    for out, channels, k, size, stride in ((2, 3, 3, 5, 1), (7, 1, 3, 6, 2), (5, 2, 4, 6, 3)):
        kernel = normal(out, channels, k, k)
        right = torch.linalg.svdvals(as_matrix(kernel, size, stride))
        values = attempt(kernel, size, stride)
        outcomes = {
            right: f"For images of {size} x {size} and stride {stride} the values differ from "
            "those of the whole matrix.",
            torch.linalg.svdvals(as_matrix(kernel, size, 1)): "The stride is not used.",
            right.square(): "The values are squared: these are the eigenvalues of K^T K.",
            right * stride / size: "The Fourier transform is scaled. Take the unscaled one of the "
            "kernel, which gives a convolution's factors.",
        }
        attempt.expect_close(values.sort(descending=True).values, outcomes)
        attempt.expect_close(values, {right: "The values should be in descending order."})
    out, channels, k, size, stride = 8, 3, 7, 16, 2
    kernel = normal(out, channels, k, k)
    attempt(kernel, size, stride, within=(meter := MemoryMeter(kernel)))
    room = 8 * out * channels * size**2  # complex numbers, and a few copies' worth
    attempt.expect(
        meter.largest <= room,
        f"A tensor of {meter.largest} numbers is made. The matrix of the whole convolution is not "
        "needed: a Fourier transform cuts it into one small matrix for each frequency.",
    )


def as_matrix(kernel: Tensor, size: int, stride: int) -> Tensor:
    """The matrix of the convolution that wraps around, [places^2 * out, channels * size^2]."""
    room = size - kernel.shape[-1]
    corner = F.pad(kernel, (0, room, 0, room))  # [out, channels, size, size]
    windows = product(range(0, size, stride), repeat=2)
    return torch.cat([corner.roll(window, (2, 3)).flatten(1) for window in windows])
