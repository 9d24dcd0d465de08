import torch
import torch.nn.functional as F


def mix_tokens(x, up, up_bias, down, down_bias):
    u = torch.einsum("hn,bnd->bhd", up, x) + up_bias[:, None]
    return torch.einsum("nh,bhd->bnd", down, F.gelu(u)) + down_bias[:, None]


def distance_from_alike(x):
    """The squared distance is the variance over the tokens, times their number."""
    spread = x.var(1, correction=0).sum(-1)  # [batch]
    return (spread / x.square().sum(-1).mean(1)).sqrt()


def spatial_gate(x, weight, bias, eps):
    u, v = x.chunk(2, -1)
    v = F.layer_norm(v, v.shape[-1:], eps=eps)
    return u * F.linear(v.mT, weight, bias).mT


def resized_mixing(x, up, up_bias, down, down_bias, old, new):
    """Interpolates with a matrix, found from the unit vectors."""
    before = old[0] * old[1]
    units = torch.eye(before).view(before, 1, *old)
    finer = F.interpolate(units, new, mode="bilinear").view(before, -1)  # [old, new]
    mixed = (before / finer.shape[1]) * torch.einsum("ho,on,bnd->bhd", up, finer, x)
    hidden = F.gelu(mixed + up_bias[:, None])
    return torch.einsum("on,oh,bhd->bnd", finer, down, hidden) + (finer.T @ down_bias)[:, None]


WRONG = [
    ("mix_tokens", "to the last axis first", lambda x, up, a, down, b: F.linear(F.linear(x, up, a), down, b)),
    ("spatial_gate", "bias[:, None]", lambda x, weight, bias, eps: weight @ x.chunk(2, -1)[1] + bias),
]  # fmt: skip

EQUIVALENT = [
    ("distance_from_alike", "a norm does not see the sign", "x - x.mean(1, keepdim=True) -> x.mean(1, keepdim=True) - x"),
    ("resized_mixing", "there is one row", "down_bias[None])[0] -> down_bias[None])[-1]"),
]  # fmt: skip
