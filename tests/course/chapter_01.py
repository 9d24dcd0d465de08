"""Chapter 1: answers that learners might give."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange


def by_unfold(images, patch):
    return F.unfold(images, patch, stride=patch).mT


def weight_in_loops(matrix, channels, size):
    weight = torch.empty(matrix.shape[1], channels, size, size)
    for c in range(channels):
        weight[:, c] = matrix[c::channels].T.reshape(-1, size, size)
    return weight


def weight_by(pattern):
    return lambda matrix, channels, size: rearrange(matrix, pattern, c=channels, h=size, w=size)


def merged_by_slices(tokens, rows, columns):
    x = tokens.reshape(len(tokens), rows, columns, -1)
    four = [x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]
    return torch.cat(four, -1).flatten(1, 2)


def padded_square_by_square(images, size):
    height, width = (math.ceil(n / size) * size for n in images.shape[2:])
    black = torch.zeros(*images.shape[:2], height, width)
    black[:, :, : images.shape[2], : images.shape[3]] = images
    return F.unfold(black, size, stride=size).mT


def faulty_padding(images, size, even=False, swapped=False):
    """Padding and cutting with one step replaced; even: pad what needs none, too."""
    below, right = ((size - n % size) if even else -n % size for n in images.shape[2:])
    padded = F.pad(images, [0, below, 0, right] if swapped else [0, right, 0, below])
    return rearrange(padded, "b c (r h) (s w) -> b (r s) (c h w)", h=size, w=size)


def cropped(images, size):
    height, width = (n // size * size for n in images.shape[2:])
    return F.unfold(images[:, :, :height, :width], size, stride=size).mT


def denoised_by_eigenvectors(images, size, stride, keep):
    """From the covariance, one image at a time, the window sums written as loops."""
    results = []
    for image in images:
        windows = image.unfold(1, size, stride).unfold(2, size, stride)  # [c, r, s, h, w]
        patches = rearrange(windows, "c r s h w -> (r s) (c h w)")
        centred = patches - patches.mean(0)
        _, vectors = torch.linalg.eigh(centred.T @ centred)
        basis = vectors.flip(1)[:, :keep]
        kept = centred @ basis @ basis.T + patches.mean(0)
        total, count = torch.zeros_like(image), torch.zeros_like(image)
        for patch, at in zip(kept, range(len(kept)), strict=True):
            top, left = (stride * n for n in divmod(at, windows.shape[2]))
            window = (slice(None), slice(top, top + size), slice(left, left + size))
            total[window] += patch.reshape(-1, size, size)
            count[window] += 1
        results.append(torch.where(count > 0, total / count, image))
    return torch.stack(results)


def faulty_denoising(images, size, stride, keep, margin="keep", order="mT"):
    """Denoising with one step replaced."""
    patches = F.unfold(images, size, stride=stride).mT
    mean = patches.mean(1, keepdim=True)
    basis = torch.linalg.svd(patches - mean, full_matrices=False).Vh[:, :keep]
    kept = (patches - mean) @ basis.mT @ basis + mean
    if order == "colours last":
        kept = rearrange(kept, "b n (c p) -> b n (p c)", c=images.shape[1])
    put = partial(F.fold, output_size=images.shape[2:], kernel_size=size, stride=stride)
    count = put(torch.ones_like(kept).mT)
    result = put(kept.mT) / count
    return result if margin == "nan" else torch.where(count > 0, result, images)


CORRECT = {
    "patchify": by_unfold,
    "convolution_weight": weight_in_loops,
    "merged_tokens": merged_by_slices,
    "padded_patches": padded_square_by_square,
    "denoised": denoised_by_eigenvectors,
}

WRONG = {
    "patchify": [
        ("axes are in another order", lambda x, p: F.unfold(x, p, stride=p)),
    ],
    "convolution_weight": [
        ("axes are in another order", weight_by("(h w c) d -> c d h w")),
    ],
    "padded_patches": [
        ("needs no padding", partial(faulty_padding, even=True)),
        ("the last axis first", partial(faulty_padding, swapped=True)),
        ("part of the image is missing", cropped),
    ],
    "denoised": [
        ("Here they are 0 / 0", partial(faulty_denoising, margin="nan")),
    ],
}

MORE_VECTORS = "the first singular vectors are the same, and those added are not kept"
SVD = "components = torch.linalg.svd(centred{}).Vh[:, :keep]"
REDUCED = SVD.format(", full_matrices=False")
BLOCKS = "blocks = tokens.reshape({}, 2, columns // 2, {})"
RIGHT = BLOCKS.format("batch, rows // 2", "2, dim")
WHERE = "return torch.where(counts {} 0, total / counts, images)"

EQUIVALENT = {
    "merged_tokens": {
        f"{RIGHT} -> {BLOCKS.format('batch, rows // 2', 'dim, 2')}": (
            "the last two axes are merged again as they were split"
        ),
        f"{RIGHT} -> {BLOCKS.format('rows // 2, batch', '2, dim')}": (
            "the first two axes count the same rows of blocks in the same order"
        ),
    },
    "denoised": {
        f"{REDUCED} -> {SVD.format(', full_matrices=True')}": MORE_VECTORS,
        f"{REDUCED} -> {SVD.format('')}": MORE_VECTORS,
        f"{WHERE.format('>')} -> {WHERE.format('!=')}": "a count is never negative",
    },
}
