"""Exercises of chapter 13: an estimate from noisy tokens, and the spectrum of a convolution.

What is expected comes from a conditioned Gaussian, and from the whole matrix of a small
convolution.
"""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise
from course.check.memory import MemoryMeter

CHAPTER = "13_what_the_patch_embedding_keeps"


@exercise(CHAPTER)
def estimate_from_noisy(attempt: Attempt) -> None:
    """tokens [batch, dim], weight, mean, covariance, noise -> patches [batch, n]."""
    batch, dim, n, noise = 3, 4, 7, 0.6
    normal = normal_draws(seed=5)
    weight, mean, spread = normal(dim, n) / n**0.5, normal(n), normal(n, n) / n**0.5
    covariance, tokens = spread @ spread.T, normal(batch, dim)
    shape = dict(batch=batch, n=n)

    def conditioned(covariance: Tensor, noise: float, variance: Tensor | None = None) -> Tensor:
        """From the joint covariance of token and patch, a Gaussian's conditional mean."""
        variance = noise**2 * torch.eye(dim) if variance is None else variance
        of_tokens = weight @ covariance @ weight.T + variance
        gain = covariance @ weight.T @ torch.linalg.inv(of_tokens)
        return mean + (tokens - weight @ mean) @ gain.T

    right = conditioned(covariance, noise)
    estimate = attempt(tokens, weight, mean, covariance, noise, shape=shape)
    attempt.expect_close(
        estimate,
        right,
        "The estimate is not the conditional mean of the patch given its noisy token.",
        mistakes={
            "The noise is left out: this trusts the tokens entirely.": conditioned(covariance, 0.0),
            "The noise is a standard deviation. Tokens have its square as variance.": conditioned(
                covariance, noise**0.5
            ),
            "The noise is in the tokens, not in the patches: add its variance to the covariance "
            "of the tokens.": conditioned(covariance + noise**2 * torch.eye(n), 0.0),
            "The mean patch is not added back.": right - mean,
            "A token is compared with 0. The prior expects the mean patch's token, W mean.": right
            + (weight @ mean)
            @ torch.linalg.solve(
                weight @ covariance @ weight.T + noise**2 * torch.eye(dim), weight @ covariance
            ),
            "The noise is added to every entry of the tokens' covariance. That of different "
            "features is independent: add it on the diagonal.": conditioned(
                covariance, noise, torch.full((dim, dim), noise**2)
            ),
        },
    )
    low = normal(n, 2)
    flat = low @ low.T  # patches that lie in a plane
    attempt.expect_close(
        attempt(
            tokens,
            weight,
            mean,
            flat,
            noise,
            shape=shape,
            if_not_finite="With a covariance of rank 2 the result is not finite. Do not invert "
            "the covariance of the patches; invert that of the tokens.",
        ),
        conditioned(flat, noise),
        "With a covariance of rank 2, patches in a plane, the estimate is wrong. Do not invert the "
        "covariance of the patches; invert that of the tokens.",
    )


@exercise(CHAPTER)
def convolution_values(attempt: Attempt) -> None:
    """kernel [out, channels, k, k], size, stride -> all singular values, descending."""
    normal = normal_draws(seed=6)
    for out, channels, k, size, stride in ((2, 3, 3, 5, 1), (7, 1, 3, 6, 2), (5, 2, 4, 6, 3)):
        kernel = normal(out, channels, k, k)
        # as many as the shorter side of the matrix has rows
        count = (size // stride) ** 2 * min(out, channels * stride**2)
        right = torch.linalg.svdvals(as_matrix(kernel, size, stride))
        values = attempt(kernel, size, stride, shape=dict(values=count))
        attempt.expect_close(
            values.sort(descending=True).values,
            right,
            f"For pictures of {size} x {size} and stride {stride} the values differ from those of "
            "the whole matrix.",
            mistakes={
                "The values are squared: these are the eigenvalues of K^T K.": right.square(),
                "The Fourier transform is scaled. Take the unscaled one of the kernel, which "
                "gives a convolution's factors.": right * stride / size,
            },
        )
        attempt.expect_close(values, right, "The values should be in descending order.")

    out, channels, k, size, stride = 8, 3, 7, 16, 2
    kernel = normal(out, channels, k, k)
    count = (size // stride) ** 2 * min(out, channels * stride**2)
    meter = MemoryMeter(kernel)
    attempt(kernel, size, stride, shape=dict(values=count), within=meter)
    room = 8 * out * channels * size**2  # complex numbers, and a few copies' worth
    attempt.expect(
        meter.largest <= room,
        f"A tensor of {meter.largest} numbers is made. The matrix of the whole convolution is not "
        "needed: a Fourier transform cuts it into one small matrix for each frequency.",
    )


def as_matrix(kernel: Tensor, size: int, stride: int) -> Tensor:
    """The whole matrix of the convolution that wraps around, window by window."""
    out, channels, k, _ = kernel.shape
    places = range(0, size, stride)
    rows = []
    for o in range(out):
        for top in places:
            for left in places:
                picture = torch.zeros(channels, size, size)
                for a in range(k):
                    for b in range(k):
                        picture[:, (top + a) % size, (left + b) % size] += kernel[o, :, a, b]
                rows.append(picture.flatten())
    return torch.stack(rows)  # [out * places^2, channels * size^2]
