from functools import partial

import torch
import torch.nn.functional as F
from torch import nn


def convolution_table(kernel, rows, columns):
    """Sees every image of one bright pixel through every window."""
    lit = torch.eye(rows * columns).view(-1, 1, rows, columns)
    windows = F.unfold(lit, len(kernel), padding=len(kernel) // 2)  # [pixel, in the window, window]
    return torch.einsum("pkw,k->wp", windows, kernel.flatten())


def layers_needed(kernels, fields):
    return -((1 - fields) // (kernels - 1))


def divided(kernels, fields, start=1, less=1, rounding=torch.ceil):
    return rounding((fields - start) / (kernels - less))


def first_and_last(layers, i):
    """The first pixel and the field's width go up from the lowest layer."""
    first, width, jump = 0, 1, 1
    for kernel, stride, padding in layers:
        first = first - padding * jump
        width = width + (kernel - 1) * jump
        jump = jump * stride
    first = first + i * jump
    return torch.stack([first, first + width - 1])


def merged_kernel(w3, w1):
    identity = torch.diag(torch.ones(len(w3)))[:, :, None, None]
    return w3 + F.pad(w1 + identity, (1, 1, 1, 1))


def circular_by_fourier(x, weight):
    return F.conv2d(F.pad(x, [weight.shape[-1] // 2] * 4, "circular"), weight)


def convolution_by_attention(x, weight, grid, sharpness):
    """The score as a query times a key: the square of the query's position drops out."""
    row, column = torch.meshgrid(*(torch.arange(float(n)) for n in grid), indexing="ij")
    p = torch.stack([row.flatten(), column.flatten()], -1)  # [tokens, 2]
    key = torch.cat([2 * p, -p.square().sum(-1, keepdim=True)], -1)  # [tokens, 3]
    heads = []
    for offset in torch.cartesian_prod(torch.arange(-1.0, 2), torch.arange(-1.0, 2)):
        query = torch.cat([p + offset, torch.ones(len(p), 1)], -1)
        heads.append(torch.softmax(sharpness * query @ key.T, -1) @ x)
    return torch.cat(heads, -1) @ weight.permute(2, 3, 1, 0).flatten(0, 2)


def by_convolution(x, weight, grid, sharpness, mode):
    conv = nn.Conv2d(weight.shape[1], len(weight), 3, padding=1, padding_mode=mode, bias=False)
    conv.weight.data = weight
    with torch.no_grad():
        return conv(x.mT.reshape(len(x), -1, *grid)).flatten(2).mT


NO_PADDING = torch.tensor([1, 1, 0])
FIRST_STRIDE = torch.tensor([torch.inf, 1, torch.inf])

WRONG = [
    ("layers_needed", "divide by the filter's width", partial(divided, start=0, less=0)),
    ("layers_needed", "is whole", partial(divided, rounding=torch.clone)),
    ("layers_needed", "With one layer less", partial(divided, rounding=lambda x: x.ceil() + (x % 1 > 0))),
    ("first_and_last", "reads 5 pixels", lambda layers, i: first_and_last(layers, i) + torch.arange(2)),
    ("first_and_last", "not centred", lambda layers, i: first_and_last(layers, i) - (layers[0, 0] - 1) / 2),
    ("first_and_last", "pixels in front", lambda layers, i: first_and_last(layers * NO_PADDING, i)),
    ("first_and_last", "stride * i", lambda layers, i: first_and_last(layers.clamp(max=FIRST_STRIDE), i)),
    ("first_and_last", "Begin with the highest", lambda layers, i: first_and_last(layers.flip(0), i)),
    ("first_and_last", "Negative numbers", lambda layers, i: first_and_last(layers, i).clamp(min=0)),
    *(("circular_by_fourier", "is shifted by", lambda x, w, n=n: circular_by_fourier(x, w).roll([w.shape[-1] // 2 * n] * 2, (2, 3))) for n in (1, 2)),
    ("circular_by_fourier", "is flipped", lambda x, w: circular_by_fourier(x, w.flip((2, 3)))),
    ("circular_by_fourier", "a factor rows * columns", lambda x, w: circular_by_fourier(x, w) * x[0, 0].numel()),
    ("convolution_by_attention", "wrong sign", lambda x, w, *rest: convolution_by_attention(x, w.flip((2, 3)), *rest)),
    ("convolution_by_attention", "swapped", lambda x, w, *rest: convolution_by_attention(x, w.mT, *rest)),
    ("convolution_by_attention", "you have zeros", partial(by_convolution, mode="zeros")),
    ("convolution_by_attention", "wraps around", partial(by_convolution, mode="circular")),
    ("convolution_by_attention", "At the border", partial(by_convolution, mode="reflect")),
]  # fmt: skip

EQUIVALENT = [
    ("merged_kernel", "both have all channels", "len(w3) -> len(w1)"),
    ("circular_by_fourier", "dtype and device are equal", "x.new_zeros -> weight.new_zeros"),
    ("circular_by_fourier", "filters are square", "shape[-1] -> shape[-2]"),
    ("convolution_by_attention", "the sign is squared", "wanted[:, None] - places -> places - wanted[:, None]"),
    ("convolution_by_attention", "of two axes the last is axis 1", "dim=-1 -> dim=1", "softmax(-1) -> softmax(1)"),
]  # fmt: skip
