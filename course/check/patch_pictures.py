"""Exercises of chapter 01 about whole pictures: of any size, and put back from their patches.

As in patch_order, what is expected comes from loops over squares.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "01_images_as_sequences"


def corners(images: Tensor, size: int, stride: int) -> list[tuple[int, int]]:
    """Top left corners of all squares that fit into the picture, in reading order."""
    height, width = images.shape[-2:]
    tops, lefts = range(0, height - size + 1, stride), range(0, width - size + 1, stride)
    return [(top, left) for top in tops for left in lefts]


def cut(images: Tensor, size: int, stride: int) -> Tensor:
    """Those squares, ``[batch, windows, channels * size * size]``."""
    squares = [
        images[:, :, top : top + size, left : left + size].flatten(1)
        for top, left in corners(images, size, stride)
    ]
    return torch.stack(squares, 1)


@exercise(CHAPTER)
def padded_patches(attempt: Attempt) -> None:
    """images [batch, channels, height, width], size -> [batch, patches, channels * size ** 2]."""
    batch, channels, size = 2, 3, 4

    def check(height: int, width: int, otherwise: str) -> None:
        images = normal_draws(seed=11)(batch, channels, height, width)
        right, below = -width % size, -height % size

        def padded(by: list[int], mode: str = "constant") -> Tensor:
            return cut(F.pad(images, by, mode=mode), size, size)

        expected = padded([0, right, 0, below])
        shape = dict(batch=batch, patches=expected.shape[1], numbers=expected.shape[2])
        rows = (height + below) // size
        downwards = expected.unflatten(1, (rows, -1)).transpose(1, 2).flatten(1, 2)
        inside = expected.unflatten(2, (channels, -1)).mT.flatten(2)
        mistakes = {
            "A patch's numbers stand in another order. All of its first channel come first, row by "
            "row, then those of the second.": inside,
            "The patches are counted downwards. They should stand in reading order.": downwards,
        }
        if right or below:
            around = [right // 2, right - right // 2, below // 2, below - below // 2]
            not_zero = f"With {height} x {width} pixels the padding is not 0. Add zeros, not "
            mistakes |= {
                "The padding is on the left or above. It should be on the right and below.": (
                    padded([right, 0, below, 0])
                ),
                "The padding is shared out over both sides. It should be on the right and below.": (
                    padded(around)
                ),
                f"{not_zero}copies of the border.": padded([0, right, 0, below], "replicate"),
                f"{not_zero}a mirrored border.": padded([0, right, 0, below], "reflect"),
            }
        attempt.expect_close(attempt(images, size, shape=shape), expected, otherwise, mistakes)

    check(8, 12, "Where the size divides both sides, these should be the plain patches.")
    check(8, 9, "With 8 x 9 pixels and patches of 4, three columns of zeros should be added.")
    check(7, 12, "With 7 x 12 pixels and patches of 4, one row of zeros should be added.")
    check(5, 14, "With 5 x 14 pixels and patches of 4, both sides should be padded.")


@exercise(CHAPTER)
def denoised(attempt: Attempt) -> None:
    """images [batch, channels, height, width], size, stride, keep -> as images."""
    size, every = 2, 3 * 2 * 2  # numbers in a patch
    images = normal_draws(seed=12)(2, 3, 8, 12)  # 24 patches that do not overlap

    def denoise(images: Tensor, stride: int, keep: int, **messages: Any) -> Tensor:
        shape = dict(zip(("batch", "channels", "height", "width"), images.shape, strict=True))
        return attempt(images, size, stride, keep, shape=shape, **messages)

    patches = cut(images, size, size)
    mean = patches.mean(1, keepdim=True)
    attempt.expect_close(
        denoise(images, size, every),
        images,
        "With patches that do not overlap, and all components kept, the picture should come back "
        "unchanged. Cutting and putting back do not fit each other.",
        mistakes={
            "The mean patch is missing. It was taken away, and should be added again.": (
                put_back(patches - mean, images, size, size)
            ),
        },
    )
    counts = coverage(images, size, 1)
    attempt.expect_close(
        denoise(images, 1, every),
        images,
        "With stride 1 and all components kept, the picture should come back unchanged. A pixel in "
        "several patches is the mean of what they say.",
        mistakes={
            "Patches that overlap are added up. Divide each pixel by the number of patches it lies "
            "in.": images * counts,
            "Every pixel is divided by the same number. Near the border fewer patches overlap.": (
                images * counts / counts.max()
            ),
        },
    )

    own, common = patches.mean(2, keepdim=True), mean.mean(0, keepdim=True)
    attempt.expect_close(
        denoise(images, size, 0),
        put_back(mean.expand_as(patches), images, size, size),
        "With no components kept, every patch should become the mean patch of its picture.",
        mistakes={
            "With no components kept the result is 0: the mean patch was not taken away first. The "
            "components are those of the patches less their mean.": torch.zeros_like(images),
            "Each patch becomes flat. The mean to take away is that of the patches, and not that "
            "of the numbers in each.": put_back(own.expand_as(patches), images, size, size),
            "All pictures share a mean patch. Each should have its own.": put_back(
                common.expand_as(patches), images, size, size
            ),
        },
    )
    attempt.expect_close(
        denoise(images, size, 2),
        put_back(projected(patches, 2), images, size, size),
        "With two components kept the result is wrong. They are the first two right singular "
        "vectors of the patches less their mean.",
        mistakes={
            "The two components with the least variance are kept. Keep those with the most.": (
                put_back(projected(patches, 2, largest=False), images, size, size)
            ),
            "All pictures share their components. Each should have its own.": put_back(
                projected(patches, 2, shared=True), images, size, size
            ),
        },
    )
    kept = projected(cut(images, size, 1), 2)
    attempt.expect_close(
        denoise(images, 1, 2),
        put_back(kept, images, size, 1),
        "With stride 1 and two components, where patches disagree, the result is wrong.",
        mistakes={
            "Where patches overlap the last one counts. Each pixel should be the mean of all.": (
                put_back(kept, images, size, 1, last=True)
            ),
        },
    )

    images = normal_draws(seed=13)(2, 3, 7, 9)  # the last row and column are in no patch
    margin = (
        "The last row and column of a 7 x 9 picture lie in no patch of 2 x 2. They should stay "
    )
    attempt.expect_close(
        denoise(images, size, every, if_not_finite=f"{margin}as they were. Here they are 0 / 0."),
        images,
        f"{margin}as they were.",
        mistakes={
            f"{margin}as they were. Here they are black.": images * coverage(images, size, size)
        },
    )


def coverage(images: Tensor, size: int, stride: int) -> Tensor:
    """In how many squares each pixel lies, of the shape of the pictures."""
    counts = torch.zeros_like(images)
    for top, left in corners(images, size, stride):
        counts[:, :, top : top + size, left : left + size] += 1
    return counts


def put_back(patches: Tensor, images: Tensor, size: int, stride: int, last: bool = False) -> Tensor:
    """Patches in their places: the mean where they overlap, or the last of them."""
    picture = torch.zeros_like(images)
    for (top, left), patch in zip(corners(images, size, stride), patches.unbind(1), strict=True):
        window = picture[:, :, top : top + size, left : left + size]
        window.mul_(0 if last else 1).add_(patch.reshape(window.shape))
    return picture if last else picture / coverage(images, size, stride)


def projected(patches: Tensor, keep: int, largest: bool = True, shared: bool = False) -> Tensor:
    """Each patch's mean and principal components, from the eigenvectors of the covariance."""
    mean = patches.mean(1, keepdim=True)
    covariance = (patches - mean).mT @ (patches - mean)  # [batch, numbers, numbers]
    covariance = covariance.sum(0, keepdim=True) if shared else covariance
    vectors = torch.linalg.eigh(covariance).eigenvectors  # in ascending order
    basis = vectors[..., -keep:] if largest else vectors[..., :keep]
    return mean + (patches - mean) @ basis @ basis.mT
