from itertools import permutations

import torch
import torch.nn.functional as F


def on_one_scale(filters):
    size = max(filters.max().item(), -filters.min().item())
    return torch.full_like(filters, 0.5) if size == 0 else (filters / size + 1) / 2


def share_in_span(filters, pictures):
    x, p = filters.flatten(1), pictures.flatten(1)
    inside = x @ torch.linalg.pinv(p, rtol=1e-4) @ p
    return inside.square().sum(1) / x.square().sum(1)


def cosines(a, b):
    return F.cosine_similarity(a.flatten(1)[:, None], b.flatten(1), dim=-1)


def greedy(a, b):
    table, total = cosines(a, b).abs(), 0.0
    for _ in range(len(a)):
        row, column = divmod(table.argmax().item(), len(a))
        total = total + table[row, column].item()
        table[row], table[:, column] = -1, -1
    return total / len(a)


def cosine_by_offset(table):
    """By the Fourier transform of the autocorrelation."""
    rows, columns, _ = table.shape
    size = (2 * rows - 1, 2 * columns - 1)
    spectrum = torch.fft.rfft2(F.normalize(table, dim=-1).permute(2, 0, 1), s=size)
    both = torch.fft.irfft2(spectrum.conj() * spectrum, s=size).sum(0)
    down, across = (n - (torch.arange(2 * n - 1) - n + 1).abs() for n in (rows, columns))
    return both.roll((rows - 1, columns - 1), (0, 1)) / (down[:, None] * across)


def matched_similarity(a, b):
    table, n = cosines(a, b).abs(), len(a)
    return max(table[range(n), list(p)].mean() for p in permutations(range(n)))


WRONG = [
    ("on_one_scale", "0 / 0", lambda x: 0.5 + 0.5 * x / x.abs().max()),
    ("matched_similarity", "best pair was taken first", greedy),
]  # fmt: skip

EQUIVALENT = [
    ("share_in_span", "no value equals the bound", "> 0 -> >= 0"),
    ("share_in_span", "a bound of the same size", "[0] -> [1]"),
    ("matched_similarity", "the default", "a.flatten(1), dim=1) -> a.flatten(1))", "b.flatten(1), dim=1) -> b.flatten(1))"),
    ("matched_similarity", "SciPy takes a tensor as an array", "cosines.numpy() -> cosines"),
]  # fmt: skip
