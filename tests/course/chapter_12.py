"""Chapter 12: answers that learners might give."""

import torch
import torch.nn.functional as F


def values(weight):
    return torch.linalg.svdvals(weight)


def variances(patches):
    return torch.linalg.eigvalsh(patches.T.cov()).flip(0)


def counted(variances, share):
    held = variances.cumsum(0) / variances.sum()
    return int((held < share).sum()) + 1


def pattern_by_inverse(weight):
    back = weight.T @ torch.linalg.inv(weight @ weight.T) @ torch.ones(len(weight))
    return back / back.norm()


def with_null_part(weight):
    lost = torch.linalg.svd(weight).Vh[len(weight) :].sum(0)
    pattern = pattern_by_inverse(weight) + lost
    return pattern / pattern.norm()


def estimate_by_loop(tokens, weight, mean, covariance, noise):
    both = torch.cat([weight @ covariance, noise * torch.eye(len(weight))], 1)
    of_tokens = both[:, : len(mean)] @ weight.T + both[:, len(mean) :] * noise
    factor = torch.linalg.cholesky(of_tokens)
    rows = []
    for token in tokens:
        known = torch.cholesky_solve((token - weight @ mean)[:, None], factor)
        rows.append(mean + covariance @ weight.T @ known[:, 0])
    return torch.stack(rows)


def by_information(tokens, weight, mean, covariance, noise):
    precision = torch.linalg.inv(covariance) + weight.T @ weight / noise**2
    gain = torch.linalg.solve(precision, weight.T) / noise**2
    return mean + (tokens - weight @ mean) @ gain.T


def whole_matrix(kernel, size, stride):
    pictures = torch.eye(kernel.shape[1] * size**2).unflatten(1, (kernel.shape[1], size, size))
    k = kernel.shape[-1]
    wrapped = F.pad(pictures, (0, k, 0, k), mode="circular")[..., : size + k - 1, : size + k - 1]
    return F.conv2d(wrapped, kernel, stride=stride).flatten(1)


def spectrum_by_folding(kernel, size, stride):
    """Frequencies of the fine grid that a stride folds onto one another, side by side."""
    out, channels, _, _ = kernel.shape
    m = size // stride
    factors = torch.fft.fft2(kernel, s=(size, size))  # [out, channels, size, size]
    folded = factors.reshape(out, channels, stride, m, stride, m)  # frequency p * m + i
    blocks = folded.permute(3, 5, 0, 1, 2, 4).reshape(m * m, out, channels * stride**2) / stride
    return torch.linalg.svdvals(blocks).flatten().sort(descending=True).values


def without_folding(kernel, size, stride):
    factors = torch.fft.fft2(kernel, s=(size, size)).permute(2, 3, 0, 1)
    return torch.linalg.svdvals(factors).flatten().sort(descending=True).values


CORRECT = {
    "noise_gain": lambda weight: torch.linalg.pinv(weight).norm() / weight.shape[1] ** 0.5,
    "components_needed": lambda patches, share: counted(variances(patches), share),
    "forgotten_pattern": pattern_by_inverse,
    "estimate_from_noisy": estimate_by_loop,
    "convolution_values": spectrum_by_folding,
}

WRONG = {
    "noise_gain": [
        ("noise comes back divided", lambda w: torch.tensor(2.0) / values(w)[0]),
    ],
    "forgotten_pattern": [
        ("This is W^T 1", lambda w: F.normalize(w.sum(0), dim=0)),
        ("sign is wrong", lambda w: -pattern_by_inverse(w)),
        ("length should be 1", lambda w: 3 * pattern_by_inverse(w)),
        ("a part that W maps to zero", with_null_part),
        ("output changes", lambda w: torch.linalg.svd(w).Vh[len(w) - 1]),
    ],
    "estimate_from_noisy": [
        ("covariance of rank 2", by_information),
    ],
    "convolution_values": [
        ("values are squared", lambda *a: spectrum_by_folding(*a).square()),
        ("transform is scaled", lambda k, n, s: spectrum_by_folding(k, n, s) * s / n),
        ("descending order", lambda *a: spectrum_by_folding(*a).flip(0)),
        ("from those of the whole matrix", without_folding),
        ("from those of the whole matrix", lambda *a: 2 * spectrum_by_folding(*a)),
        ("not needed", lambda *a: torch.linalg.svdvals(whole_matrix(*a))),
    ],
}

HELD = "held = variances.cumsum({}) / variances.sum()"
COUNT = "return int((held {} share).sum()) + 1"

EQUIVALENT = {
    "components_needed": {
        f"{HELD.format(0)} -> {HELD.format(-1)}": "there is one axis",
        "centred = patches - patches.mean(0) -> centred = patches.mean(0) - patches": (
            "a variance has no sign"
        ),
        f"{COUNT.format('<')} -> {COUNT.format('<=')}": (
            "a sum of rounded numbers does not equal the share"
        ),
    },
}
