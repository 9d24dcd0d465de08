"""Chapter 8: answers that learners might give."""

from itertools import permutations

import torch
import torch.nn.functional as F


def one_scale(filters):
    size = max(filters.max().item(), -filters.min().item())
    return torch.full_like(filters, 0.5) if size == 0 else (filters / size + 1) / 2


def own_scale(filters):
    low, high = filters.amin((1, 2, 3), True), filters.amax((1, 2, 3), True)
    return (filters - low) / (high - low)


def share_by_inverse(filters, pictures):
    x, p = filters.flatten(1), pictures.flatten(1)
    inside = x @ torch.linalg.pinv(p, rtol=1e-4) @ p
    return inside.square().sum(1) / x.square().sum(1)


def share_by_triangle(filters, pictures):
    """Right as long as the images are independent."""
    x, p = filters.flatten(1), pictures.flatten(1)
    basis = torch.linalg.qr(p.T).Q
    return (x @ basis).square().sum(1) / x.square().sum(1)


def share_by_products(filters, pictures):
    x, p = filters.flatten(1), pictures.flatten(1)
    return (x @ p.T).square().sum(1) / x.square().sum(1)


def offsets_by_products(table):
    rows, columns, dim = table.shape
    unit = table / table.norm(dim=-1, keepdim=True)
    result = table.new_zeros(2 * rows - 1, 2 * columns - 1)
    for a in range(1 - rows, rows):
        for b in range(1 - columns, columns):
            here = unit[max(0, -a) : rows - max(0, a), max(0, -b) : columns - max(0, b)]
            there = unit[max(0, a) : rows + min(0, a), max(0, b) : columns + min(0, b)]
            result[rows - 1 + a, columns - 1 + b] = (here * there).sum(-1).mean()
    return result


def pairs_of(table):
    rows, columns, _ = table.shape
    down, across = (n - (torch.arange(2 * n - 1) - n + 1).abs() for n in (rows, columns))
    return (down[:, None] * across).float()


def dot_products(table):
    """By the Fourier transform of the autocorrelation."""
    rows, columns, _ = table.shape
    size = (2 * rows - 1, 2 * columns - 1)
    spectrum = torch.fft.rfft2(table.permute(2, 0, 1), s=size)
    both = torch.fft.irfft2(spectrum.conj() * spectrum, s=size).sum(0)
    return both.roll((rows - 1, columns - 1), (0, 1))


def around(table):
    rows, columns, _ = table.shape
    unit = F.normalize(table, dim=-1)
    shifts = [[(-a, -b) for b in range(1 - columns, columns)] for a in range(1 - rows, rows)]
    return torch.stack(
        [torch.stack([(unit * unit.roll(s, (0, 1))).sum(-1).mean() for s in row]) for row in shifts]
    )


def cosines(a, b):
    return F.cosine_similarity(a.flatten(1)[:, None], b.flatten(1), dim=-1)


def matched(table):
    n = len(table)
    return max(table[range(n), list(p)].mean() for p in permutations(range(n)))


def greedy(a, b):
    table, total = cosines(a, b).abs(), 0.0
    for _ in range(len(a)):
        row, column = divmod(table.argmax().item(), len(a))
        total = total + table[row, column].item()
        table[row], table[:, column] = -1, -1
    return total / len(a)


def without_mean(x):
    return x - x.mean((1, 2, 3), keepdim=True)


CORRECT = {
    "on_one_scale": one_scale,
    "share_in_span": share_by_inverse,
    "cosine_by_offset": lambda t: dot_products(F.normalize(t, dim=-1)) / pairs_of(t),
    "matched_similarity": lambda a, b: matched(cosines(a, b).abs()),
}

WRONG = {
    "on_one_scale": [
        ("its own scale", own_scale),
        ("its own factor", lambda x: 0.5 + 0.5 * x / x.abs().amax((1, 2, 3), True)),
        ("smallest weight of all", lambda x: (x - x.min()) / (x.max() - x.min())),
        ("whatever the sign", lambda x: 0.5 + 0.5 * x / x.max()),
        ("The range is 0 to 1", lambda x: x / x.abs().max()),
        ("0 / 0", lambda x: 0.5 + 0.5 * x / x.abs().max()),
    ],
    "share_in_span": [
        ("ratio of the norms", lambda x, p: share_by_inverse(x, p).sqrt()),
        ("outside of the span", lambda x, p: 1 - share_by_inverse(x, p)),
        (
            "energy inside",
            lambda x, p: share_by_inverse(x, p) * x.square().sum((1, 2, 3)),
        ),
        (
            "fits best",
            lambda x, p: cosines(x, p).square().amax(1),
        ),
        ("cannot be added", share_by_products),
        ("singular value is zero", share_by_triangle),
    ],
    "cosine_by_offset": [
        ("dot products", lambda t: dot_products(t) / pairs_of(t)),
        ("sums over the pairs", lambda t: dot_products(F.normalize(t, dim=-1))),
        (
            "number of positions",
            lambda t: dot_products(F.normalize(t, dim=-1)) / t[..., 0].numel(),
        ),
        ("a ring", around),
        ("mirrored", lambda t: offsets_by_products(t).flip(1)),
        ("mean vector", lambda t: offsets_by_products(t - t.mean((0, 1)))),
        (
            "in the corner",
            lambda t: offsets_by_products(t).roll((1 - t.shape[0], 1 - t.shape[1]), (0, 1)),
        ),
    ],
    "matched_similarity": [
        ("in another order should have", lambda a, b: cosines(a, b).diagonal().abs().mean()),
        ("absolute cosine", lambda a, b: matched(cosines(a, b))),
        ("best pair was taken first", greedy),
        ("Each filter of a", lambda a, b: cosines(a, b).abs().amax(1).mean()),
        ("Each filter of b", lambda a, b: cosines(a, b).abs().amax(0).mean()),
        (
            "mean of each filter",
            lambda a, b: matched(cosines(without_mean(a), without_mean(b)).abs()),
        ),
    ],
}

INSIDE = "inside = x @ Vh[s {} 0.0001 * s[{}]].T"
UNIT = "a, b = (F.normalize(a.flatten(1){}), F.normalize(b.flatten(1){}))"
PAIRING = "rows, columns = linear_sum_assignment({}, maximize=True)"

EQUIVALENT = {
    "on_one_scale": {},
    "share_in_span": {
        f"{INSIDE.format('>', 0)} -> {INSIDE.format('>=', 0)}": "no value equals the bound",
        f"{INSIDE.format('>', 0)} -> {INSIDE.format('>', 1)}": "a bound of the same size",
    },
    "cosine_by_offset": {},
    "matched_similarity": {
        f"{UNIT.format(', dim=1', ', dim=1')} -> {UNIT.format('', ', dim=1')}": "the default",
        f"{UNIT.format(', dim=1', ', dim=1')} -> {UNIT.format(', dim=1', '')}": "the default",
        f"{PAIRING.format('cosines.numpy()')} -> {PAIRING.format('cosines')}": (
            "SciPy takes a tensor as an array"
        ),
    },
}
