import math
from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange


def patchify(images, patch):
    return F.unfold(images, patch, stride=patch).mT


def convolution_weight(matrix, channels, size):
    return matrix.T.unflatten(1, (size, size, channels)).movedim(3, 1)


def merged_tokens(tokens, rows, columns):
    x = tokens.reshape(len(tokens), rows, columns, -1)
    four = [x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]
    return torch.cat(four, -1).flatten(1, 2)


def padded_patches(images, size):
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


def denoised(images, size, stride, keep):
    """From the covariance, one image at a time; what no patch covers stays."""
    result = with_nan_at_the_margin(images, size, stride, keep)
    return torch.where(result.isnan(), images, result)


def with_nan_at_the_margin(images, size, stride, keep):
    put = partial(F.fold, output_size=images.shape[2:], kernel_size=size, stride=stride)
    kept = []
    for patches in F.unfold(images, size, stride=stride).mT:
        centred = patches - patches.mean(0)
        basis = torch.linalg.eigh(centred.T @ centred).eigenvectors.flip(1)[:, :keep]
        kept.append((centred @ basis @ basis.T + patches.mean(0)).T)
    return put(torch.stack(kept)) / put(torch.ones_like(torch.stack(kept)))


WRONG = [
    ("patchify", "count patches along each", lambda x, p: x.view(len(x), -1, *[len(x[0, 0]) // p, p] * 2)),
    ("padded_patches", "needs no padding", partial(faulty_padding, even=True)),
    ("padded_patches", "the last axis first", partial(faulty_padding, swapped=True)),
    ("padded_patches", "part of the image is missing", cropped),
    ("denoised", "Here they are 0 / 0", with_nan_at_the_margin),
]  # fmt: skip

EQUIVALENT = [
    ("merged_tokens", "the last two axes are merged again as they were split", "2, dim -> dim, 2"),
    ("merged_tokens", "the first two axes count the same rows of blocks in the same order", "batch, rows // 2 -> rows // 2, batch"),
    ("denoised", "the vectors that this adds are not kept", "full_matrices=False -> full_matrices=True", ", full_matrices=False) -> )"),
    ("denoised", "a count is never negative", "> 0 -> != 0"),
]  # fmt: skip
