import torch
import torch.nn.functional as F


def with_statistics(y, gamma, beta, mean, std):
    return y * std / gamma + (mean - std * beta / gamma)


def rms_input(y, gamma, eps):
    """Solves for the mean square of the input first."""
    r = (y / gamma).pow(2).mean(2, True)
    square = eps * r / (1 - r)
    return torch.sqrt(square + eps) * (y / gamma)


def norm_pullback(x, gamma, eps, g):
    """As gamma * g less its shadows on the row of ones and on z."""
    inverse = (x.var(-1, correction=0, keepdim=True) + eps).rsqrt()
    rows = torch.stack([torch.ones_like(x), (x - x.mean(-1, keepdim=True)) * inverse], -2)
    h = (g * gamma)[..., None, :]
    return ((h - h @ rows.mT @ rows / x.shape[-1]) * inverse[..., None]).squeeze(-2)


def backward(x, gamma, eps, g):
    x = x.clone().requires_grad_()
    F.layer_norm(x, gamma.shape, gamma, None, eps).backward(g)
    return x.grad


def forgotten(x, function, tolerance):
    """By the symmetric product of the Jacobian with itself, in float64."""
    jacobian = torch.func.jacfwd(function)(x).double()
    values, vectors = torch.linalg.eigh(jacobian.T @ jacobian)
    lost = vectors[:, values.clamp(min=0).sqrt() <= tolerance * values[-1].sqrt()]
    return (lost @ lost.T).to(x.dtype)


def patches_behind_rms(y, gamma, weight, offset):
    """Looks from beside the image of the embedding, where the scale alone is unknown."""
    w = y / gamma
    beside = torch.linalg.svd(weight).U[:, weight.shape[1] :]  # [dim, dim - n]
    a = ((offset @ beside) * (w @ beside)).sum(-1) / (w @ beside).square().sum(-1)
    return (a[..., None] * w - offset) @ torch.linalg.pinv(weight).T


def columns(x, function, tolerance):
    _, values, v = torch.linalg.svd(torch.func.jacrev(function)(x))
    lost = v[:, int((values > tolerance * values[0]).sum()) :]
    return lost @ lost.T


ALSO_RIGHT = [
    ("norm_pullback", lambda x, gamma, eps, g: norm_pullback(x.clone().requires_grad_(), gamma, eps, g)),
]  # fmt: skip

WRONG = [
    ("rms_input", "Undo gamma before", lambda y, g, eps: y / g * (eps / (1 - (y**2).mean(2, True))) ** 0.5),
    ("rms_input", "the sum of the squares", lambda y, gamma, eps: y * (eps / (1 - (y**2).sum(2, True))) ** 0.5),
    ("norm_pullback", "by autograd. Write", backward),
    ("norm_pullback", "by autograd. Write", lambda x, gamma, eps, g: torch.func.vjp(lambda x: F.layer_norm(x, gamma.shape, gamma, None, eps), x)[1](g)[0]),
    ("forgotten", "columns of V^T", columns),
]  # fmt: skip

EQUIVALENT = [
    ("norm_pullback", "z stands in the result twice", "x - x.mean(-1, keepdim=True) -> x.mean(-1, keepdim=True) - x"),
    ("forgotten", "no singular value is equal to the threshold", "values > -> values >="),
    ("patches_behind_rms", "there is one right side", ":-1, 0] -> :-1, -1]"),
    ("patches_behind_rms", "the scale comes out negative, and the patches are the same", "-w -> w"),
]  # fmt: skip
