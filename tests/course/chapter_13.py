"""Chapter 13: answers that learners might give."""

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


EQUIVALENT = {
    "norm_pullback": {
        "x - x.mean(-1, keepdim=True) -> x.mean(-1, keepdim=True) - x": "z stands in the result twice"
    },
    "forgotten": {"values > -> values >=": "no singular value is equal to the threshold"},
    "patches_behind_rms": {
        ":-1, 0] -> :-1, -1]": "there is one right side",
        "-w -> w": "the scale comes out negative, and the patches are the same",
    },
}
