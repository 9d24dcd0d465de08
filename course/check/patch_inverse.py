"""Exercises of chapter 13 about one matrix: noise, principal components, what a layer norm hides.

What is expected comes from matrices that are built with known singular values and directions.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, close, normal_draws
from course.check.exercise import exercise

CHAPTER = "13_what_the_patch_embedding_keeps"


def matrix(values: list[float], rows: int, columns: int, seed: int) -> tuple[Tensor, Tensor]:
    """A matrix with these singular values, [rows, columns], and its right directions as rows."""
    normal = normal_draws(seed)
    left = torch.linalg.qr(normal(rows, rows))[0][:, : len(values)]
    right = torch.linalg.qr(normal(columns, columns))[0][:, : len(values)]
    return left * torch.tensor(values) @ right.T, right.T


@exercise(CHAPTER)
def noise_gain(attempt: Attempt) -> None:
    """weight [dim, n] of rank n -> root mean square error of a patch for noise 1 in its token."""
    dim, n = 9, 5
    orthogonal, _ = matrix([1.0] * n, dim, n, seed=0)
    for scale in (1.0, 4.0):
        attempt.expect_close(
            attempt(scale * orthogonal),
            torch.tensor(1 / scale),
            f"With {n} singular values that all are {scale:g}, noise comes back divided by "
            f"{scale:g}, in every direction alike.",
            mistakes={
                "The noise of the whole patch is returned. Divide the mean square over its n "
                "numbers.": torch.tensor(n**0.5 / scale),
                "The error is spread over the n numbers of the patch, not over the token's dim "
                "features.": torch.tensor((n / dim) ** 0.5 / scale),
                "This is the mean square. Take its root.": torch.tensor(1 / scale**2),
                "This is what W does to noise in the patch. The way back divides by the singular "
                "values.": torch.tensor(scale),
            },
        )
    values = torch.tensor([3.0, 2.0, 1.0, 0.5, 0.25])
    weight, _ = matrix(values.tolist(), dim, n, seed=1)
    attempt.expect_close(
        attempt(weight),
        values.pow(-2).mean().sqrt(),
        "With the singular values 3, 2, 1, 1/2 and 1/4 the result is wrong.",
        mistakes={
            "This is the worst direction alone. Noise has all directions, and their squares "
            "are averaged.": 1 / values.min(),
            "The factors 1 / sigma are averaged. Of independent errors it is the squares that "
            "add.": (1 / values).mean(),
        },
    )


@exercise(CHAPTER)
def components_needed(attempt: Attempt) -> None:
    """patches [count, n], share -> the least number of principal components that hold it."""
    count, n = 400, 6
    variances = torch.tensor([16.0, 8.0, 4.0, 2.0, 1.0, 1.0])  # of 32: .5 .75 .875 .9375 .97 1
    normal = normal_draws(seed=2)
    scores = normal(count, n)
    scores = torch.linalg.qr(scores - scores.mean(0))[0]  # centred, orthonormal columns
    turn = torch.linalg.qr(normal(n, n))[0]
    patches = scores * variances.sqrt() @ turn.T

    def needs(patches: Tensor, share: float, right: int, mistakes: dict[int, str]) -> None:
        needed = attempt(patches, share)
        attempt.expect_close(
            needed,
            torch.tensor(float(right)),
            f"Components with variances 16, 8, 4, 2, 1 and 1: {right} hold a share of {share:g}.",
            {text: torch.tensor(float(wrong)) for wrong, text in mistakes.items()},
        )

    roots = "This counts by singular values. Variances are their squares."
    fewest = "One too few: what is counted holds less than the share. At least the share is asked."
    many = "One too many: with one component fewer the share is held already."
    needs(patches, 0.7, 2, {3: roots, 1: fewest, 6: "The smallest variances are counted first."})
    needs(patches, 0.9, 4, {3: fewest, 5: many})
    needs(patches, 0.45, 1, {0: fewest, 2: many})
    far = "A common mean of all patches is no variance: subtract it first."
    needs(patches + 30 * turn[:, 5], 0.7, 2, {1: far})


@exercise(CHAPTER)
def forgotten_pattern(attempt: Attempt) -> None:
    """weight [dim, n] of rank dim <= n -> the pattern, [n], that LayerNorm hides."""
    for dim, n in ((6, 6), (5, 8)):
        weight, seen = matrix([2.0, 1.5, 1.2, 0.9, 0.7, 0.5][:dim], dim, n, seed=3)
        normal = normal_draws(seed=4)
        patch, offset = normal(n), normal(dim)
        pattern = attempt(weight, shape=dict(n=n))
        attempt.expect(bool(pattern.any()), "The pattern is zero. Its length should be 1.")
        ones = torch.ones(dim)
        right = torch.linalg.pinv(weight) @ ones
        right = right / right.norm()
        attempt.expect(
            not close(pattern / pattern.norm(), F.normalize(weight.T @ ones, dim=0)),
            "This is W^T 1, along which the mean of the token grows fastest. It changes the "
            "deviations from the mean, too. Which pattern does W map to 1 itself?",
        )
        moved = weight @ (pattern / pattern.norm())
        attempt.expect(
            bool(moved.norm() > 1e-3),
            "W maps this pattern to zero: the embedding hides it, not the norm.",
        )
        before = F.layer_norm(weight @ patch + offset, (dim,))
        after = F.layer_norm(weight @ (patch + pattern) + offset, (dim,))
        attempt.expect_close(
            after,
            before,
            "LayerNorm's output changes when the pattern is added to a patch. W should map the "
            "pattern to a vector whose entries are all equal.",
        )
        attempt.expect(
            close(seen.T @ (seen @ pattern), pattern),
            "The pattern has a part that W maps to zero. Of all patterns that LayerNorm hides, "
            "take the one without it.",
        )
        attempt.expect_close(pattern.norm(), torch.tensor(1.0), "Its length should be 1.")
        attempt.expect_close(
            pattern,
            right,
            "The token's features should grow by it; they fall: the sign is wrong.",
        )
