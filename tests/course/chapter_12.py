import torch
import torch.nn.functional as F


def forgotten_pattern(weight):
    back = weight.T @ torch.linalg.inv(weight @ weight.T) @ torch.ones(len(weight))
    return back / back.norm()


def with_null_part(weight):
    lost = torch.linalg.svd(weight).Vh[len(weight) :].sum(0)
    pattern = forgotten_pattern(weight) + lost
    return pattern / pattern.norm()


def estimate_from_noisy(tokens, weight, mean, covariance, noise):
    """Inverts a matrix of a patch's size, not of a token's."""
    system = noise**2 * torch.eye(len(mean)) + covariance @ weight.T @ weight
    gain = torch.linalg.solve(system, covariance @ weight.T)  # [n, dim]
    return mean + (tokens - weight @ mean) @ gain.T


def whole_matrix(kernel, size, stride):
    pictures = torch.eye(kernel.shape[1] * size**2).unflatten(1, (kernel.shape[1], size, size))
    k = kernel.shape[-1]
    wrapped = F.pad(pictures, (0, k, 0, k), mode="circular")[..., : size + k - 1, : size + k - 1]
    return F.conv2d(wrapped, kernel, stride=stride).flatten(1)


def convolution_values(kernel, size, stride):
    """Frequencies of the fine grid that a stride folds onto one another, side by side."""
    out, channels, _, _ = kernel.shape
    m = size // stride
    factors = torch.fft.fft2(kernel, s=(size, size))  # [out, channels, size, size]
    folded = factors.reshape(out, channels, stride, m, stride, m)  # frequency p * m + i
    blocks = folded.permute(3, 5, 0, 1, 2, 4).reshape(m * m, out, channels * stride**2) / stride
    return torch.linalg.svdvals(blocks).flatten().sort(descending=True).values


def noise_gain(weight):
    return torch.linalg.pinv(weight).norm() / weight.shape[1] ** 0.5


def components_needed(patches, share):
    variances = torch.linalg.eigvalsh(patches.T.cov()).flip(0)
    return int((variances.cumsum(0) / variances.sum() < share).sum()) + 1


WRONG = [
    ("forgotten_pattern", "This is W^T 1", lambda w: F.normalize(w.sum(0), dim=0)),
    ("forgotten_pattern", "sign is wrong", lambda w: -forgotten_pattern(w)),
    ("forgotten_pattern", "a part that W maps to zero", with_null_part),
    ("convolution_values", "not needed", lambda *a: torch.linalg.svdvals(whole_matrix(*a))),
]  # fmt: skip

EQUIVALENT = [
    ("components_needed", "there is one axis", "cumsum(0) -> cumsum(-1)"),
    ("components_needed", "a variance has no sign", "patches - patches.mean(0) -> patches.mean(0) - patches"),
    ("components_needed", "a sum of rounded numbers does not equal the share", "held < share -> held <= share"),
]  # fmt: skip
