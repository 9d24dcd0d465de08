"""Chapter 1: images cut into patches; patches merged, padded, and put back into an image."""

from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, NotYet, normal_draws
from course.check.exercise import exercise


@exercise("batch, patches, numbers")
def patchify(attempt: Attempt) -> None:
    """images [batch, channels, height, width], patch -> [batch, patches, numbers]."""
    batch, rows, columns = 2, 4, 5
    several = "With one channel the patches are right, with three channels they are not."
    for channels, size in ((1, 6), (1, 7), (3, 6)):  # the second catches a number typed in
        one = f"With one channel the patches of {size} x {size} pixels are wrong."
        images = normal_draws(seed=6)(batch, channels, rows * size, columns * size)
        expected = cut(images, size, size)
        grid = expected.unflatten(1, (rows, columns))
        pixels = expected.unflatten(2, (channels, size, size))
        apart = images.unflatten(3, (size, columns)).unflatten(2, (size, rows))
        outcomes = {
            expected: one if channels == 1 else several,
            images.reshape(expected.shape): "The numbers are cut up as they lie in memory, so that "
            "a patch is a piece of a few lines. Split both sides, reorder the axes, then merge.",
            apart.permute(0, 3, 5, 1, 2, 4).flatten(3).flatten(1, 2): "The pixels of a patch lie "
            "far apart in the image. Where a side is split, the axis that numbers the patches "
            "comes first.",
            grid.transpose(1, 2).flatten(1, 2): "The patches are counted downwards. Reading order "
            "goes along a row first.",
            pixels.mT.flatten(2): "Rows and columns of pixels are exchanged: every patch is "
            "mirrored across its diagonal.",
            pixels.flatten(3).mT.flatten(2): "The channel comes last in a patch. All numbers of "
            "its first channel should come first, then those of the second.",
        }
        odd = {"is invalid for input": "Height and width differ: count patches along each."}
        attempt.expect_close(attempt(images, size, explain=odd), outcomes)


@exercise("dim, channels, height, width")
def convolution_weight(attempt: Attempt) -> None:
    """matrix [size * size * channels, dim], channels, size -> [dim, channels, size, size]."""
    channels, size, dim = 3, 4, 5
    grey = normal_draws(seed=7)(size * size, dim)
    filters = [column.reshape(1, size, size) for column in grey.unbind(1)]
    outcomes = {
        torch.stack(filters): "With one channel, filter k should be column k of the matrix, cut "
        "into rows of the patch.",
        torch.stack(filters).mT: "Rows and columns of the patch are exchanged: every filter is "
        "mirrored across its diagonal.",
        grey.reshape(dim, 1, size, size): "The matrix is cut up as it lies in memory, which mixes "
        "the filters. A filter is a column of it: bring that axis to the front first.",
    }
    attempt.expect_close(attempt(grey, 1, size), outcomes)
    matrix = normal_draws(seed=8)(size * size * channels, dim)
    outcomes = {
        matrix.view(size, size, channels, dim).permute(3, 2, 0, 1): "With several channels the "
        "weight is wrong. Row (i * size + j) * channels + c of the matrix belongs to pixel (i, j) "
        "and channel c.",
        matrix.T.reshape(dim, channels, size, size): "The channel is taken for the slowest of the "
        "three. In this matrix the channels of one pixel are side by side.",
    }
    attempt.expect_close(attempt(matrix, channels, size), outcomes)


@exercise("batch, groups, numbers")
def merged_tokens(attempt: Attempt) -> None:
    """tokens [batch, rows * columns, dim], rows, columns -> [batch, .. / 4, 4 * dim]."""
    batch, dim = 5, 7

    # One group: the order within it, which is that of the tokens themselves.
    four = normal_draws(seed=9)(batch, 4, dim)
    outcomes = {
        four.reshape(batch, 1, 4 * dim): "On a 2 x 2 grid, four tokens should follow one another.",
        four.mT.reshape(batch, 1, 4 * dim): "The numbers of the four tokens are interleaved. Each "
        "token should stay together.",
        four[:, [0, 2, 1, 3]].reshape(batch, 1, -1): "The four are in the order top left, bottom "
        "left, top right, bottom right. The right neighbour comes before the one below.",
    }
    attempt.expect_close(attempt(four, 2, 2), outcomes)

    rows, columns = 6, 8
    tokens = normal_draws(seed=10)(batch, rows * columns, dim)

    def groups(*grid: int) -> Tensor:
        """Squares of four on a grid of so many rows and columns."""
        squares = cut(tokens.mT.unflatten(2, grid), 2, 2)  # [batch, groups, dim * 4]
        return squares.unflatten(2, (dim, 4)).mT.flatten(2)

    right = groups(rows, columns)
    outcomes = {
        right: f"On a grid of {rows} rows and {columns} columns the groups are wrong. Each should "
        "hold two neighbours of one row and the two below them.",
        tokens.reshape(batch, -1, 4 * dim): "Four tokens that follow one another are merged: they "
        "lie in one row. Two of the four should come from the row below.",
        groups(columns, rows): "Rows and columns are exchanged: the grid is read as "
        f"{columns} rows of {rows}.",
        right.unflatten(1, (rows // 2, -1)).transpose(1, 2).flatten(1, 2): "The groups are counted "
        "downwards. They should be in reading order, like the tokens.",
    }
    attempt.expect_close(attempt(tokens, rows, columns), outcomes)


@exercise("batch, patches, numbers")
def padded_patches(attempt: Attempt) -> None:
    """images [batch, channels, height, width], size -> [batch, patches, channels * size ** 2]."""
    batch, channels, size = 2, 3, 4

    def check(height: int, width: int, otherwise: str) -> None:
        images = normal_draws(seed=11)(batch, channels, height, width)
        right, below = -width % size, -height % size

        def padded(by: list[int]) -> Tensor:
            return cut(F.pad(images, by), size, size)

        expected = padded([0, right, 0, below])
        rows = (height + below) // size
        downwards = expected.unflatten(1, (rows, -1)).transpose(1, 2).flatten(1, 2)
        inside = expected.unflatten(2, (channels, -1)).mT.flatten(2)
        outcomes = {
            expected: otherwise,
            inside: "A patch's numbers are in the wrong order. All of its first channel come "
            "first, row by row, then those of the second.",
            downwards: "The patches are counted downwards. They should be in reading order.",
        }
        if right or below:
            around = [right // 2, right - right // 2, below // 2, below - below // 2]
            outcomes |= {
                padded([right, 0, below, 0]): "The padding is on the left or above. It should be "
                "on the right and below.",
                padded(around): "The padding is on all sides. It should be on the right and below.",
            }
        fitting = height // size, width // size
        advice = {
            f"shape {[batch, (fitting[0] + 1) * (fitting[1] + 1), channels * size**2]}": "A side "
            "that the size divides needs no padding: -side % size is 0 there.",
            f"shape {[batch, fitting[0] * fitting[1], channels * size**2]}": "A part of the image "
            "is missing. Have rows and columns changed places in the padding?",
            "Error": f"Here {height} x {width} pixels should become {height + below} x "
            f"{width + right}: F.pad takes [left, right, top, bottom], the last axis first.",
        }
        try:
            attempt.expect_close(attempt(images, size), outcomes)
        except NotYet as reason:
            for symptom, message in advice.items():
                if symptom in str(reason):
                    raise NotYet(f"{reason} {message}") from reason
            raise

    check(8, 12, "Where the size divides both sides, these should be the plain patches.")
    check(8, 9, "With 8 x 9 pixels and patches of 4, three columns of zeros should be added.")
    check(7, 12, "With 7 x 12 pixels and patches of 4, one row of zeros should be added.")
    check(5, 14, "With 5 x 14 pixels and patches of 4, both sides should be padded.")


@exercise("batch, channels, height, width")
def denoised(attempt: Attempt) -> None:
    """images [batch, channels, height, width], size, stride, keep -> as images."""
    size = 2
    every = 3 * 2 * 2  # numbers in a patch
    images = normal_draws(seed=12)(2, 3, 8, 12)  # 24 patches that do not overlap
    patches = cut(images, size, size)
    mean = patches.mean(1, keepdim=True)
    back = partial(put_back, images=images, size=size, stride=size)
    outcomes = {
        images: "With patches that do not overlap, and all components kept, the image should come "
        "back unchanged. Cutting and putting back do not match.",
        back(patches - mean): "The mean patch is missing. It was subtracted and should be added "
        "again.",
    }
    attempt.expect_close(attempt(images, size, size, every), outcomes)
    outcomes = {
        images: "With stride 1 and all components kept, the image should come back unchanged. A "
        "pixel in several patches is the mean of their values.",
        images * coverage(images, size, 1): "Patches that overlap are added up. Divide each pixel "
        "by the number of patches it lies in.",
    }
    attempt.expect_close(attempt(images, size, 1, every), outcomes)
    common = mean.mean(0, keepdim=True)
    outcomes = {
        back(mean.expand_as(patches)): "With no components kept, every patch should become the "
        "mean patch of its image.",
        torch.zeros_like(images): "With no components kept the result is 0: the mean patch was not "
        "subtracted first. The components are those of the patches minus their mean.",
        back(patches.mean(2, keepdim=True).expand_as(patches)): "Each patch becomes flat. The mean "
        "to subtract is that of the patches, not that of the numbers in each.",
        back(common.expand_as(patches)): "All images share a mean patch. Each should have its own.",
    }
    attempt.expect_close(attempt(images, size, size, 0), outcomes)
    outcomes = {
        back(projected(patches, 2)): "With two components kept the result is wrong. They are the "
        "first two right singular vectors of the patches minus their mean.",
        back(projected(patches, 2, largest=False)): "The two components with the least variance "
        "are kept. Keep those with the most.",
        back(projected(patches, 2, shared=True)): "All images share their components. Each should "
        "have its own.",
    }
    attempt.expect_close(attempt(images, size, size, 2), outcomes)
    kept = projected(cut(images, size, 1), 2)
    outcomes = {
        put_back(kept, images, size, 1): "With stride 1 and two components, where patches "
        "disagree, the result is wrong.",
        put_last(kept, images, size): "Where patches overlap the last one counts. Each pixel "
        "should be the mean of all.",
    }
    attempt.expect_close(attempt(images, size, 1, 2), outcomes)
    images = normal_draws(seed=13)(2, 3, 7, 9)  # the last row and column are in no patch
    margin = "The last row and column of a 7 x 9 image lie in no patch of 2 x 2. They should stay "
    outcomes = {
        images: f"{margin}as they were.",
        images * coverage(images, size, size): f"{margin}as they were. Here they are black.",
    }
    message = f"{margin}as they were. Here they are 0 / 0."
    attempt.expect_close(attempt(images, size, size, every, if_not_finite=message), outcomes)


def cut(images: Tensor, size: int, stride: int) -> Tensor:
    """All squares that fit into the image, ``[batch, windows, channels * size * size]``."""
    return F.unfold(images, size, stride=stride).mT


def coverage(images: Tensor, size: int, stride: int) -> Tensor:
    """In how many of these squares each pixel lies, of the shape of the images."""
    ones = torch.ones_like(cut(images, size, stride))
    return F.fold(ones.mT, images.shape[2:], size, stride=stride)


def put_back(patches: Tensor, images: Tensor, size: int, stride: int) -> Tensor:
    """Patches put back: the mean where they overlap."""
    total = F.fold(patches.mT, images.shape[2:], size, stride=stride)
    return total / coverage(images, size, stride)


def put_last(patches: Tensor, images: Tensor, size: int) -> Tensor:
    """Patches at every position put back: the last where they overlap."""
    image = torch.zeros_like(images)
    places = product(*(range(side - size + 1) for side in images.shape[2:]))
    for (top, left), patch in zip(places, patches.unbind(1), strict=True):
        window = image[:, :, top : top + size, left : left + size]
        window.copy_(patch.reshape(window.shape))
    return image


def projected(patches: Tensor, keep: int, largest: bool = True, shared: bool = False) -> Tensor:
    """Each patch's mean and principal components, from the eigenvectors of the covariance."""
    mean = patches.mean(1, keepdim=True)
    covariance = (patches - mean).mT @ (patches - mean)  # [batch, numbers, numbers]
    covariance = covariance.sum(0, keepdim=True) if shared else covariance
    vectors = torch.linalg.eigh(covariance).eigenvectors  # in ascending order
    basis = vectors[..., -keep:] if largest else vectors[..., :keep]
    return mean + (patches - mean) @ basis @ basis.mT
