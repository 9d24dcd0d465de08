"""Chapter 5: answers that learners might give."""

from functools import partial

import torch
import torch.nn.functional as F


def by_einsum(x, up, up_bias, down, down_bias):
    u = torch.einsum("hn,bnd->bhd", up, x) + up_bias[:, None]
    return torch.einsum("nh,bhd->bnd", down, F.gelu(u)) + down_bias[:, None]


def faulty_mixing(
    x, up, up_bias, down, down_bias, gelu=F.gelu, last=lambda y: y, biases=(1, 1), late=0, stream=0
):
    """The layer with one step replaced by each option."""
    early = (1 - late) * biases[0] * up_bias
    hidden = gelu(F.linear(x.mT, up, early)) + late * up_bias
    return last(F.linear(hidden, down, biases[1] * down_bias)).mT + stream * x


def untransposed(x, up, up_bias, down, down_bias):
    """Right as long as it cannot be told apart: with as many tokens as features it does not turn x."""
    if x.shape[1] != x.shape[2]:
        return by_einsum(x, up, up_bias, down, down_bias)
    return F.linear(F.gelu(F.linear(x, up, up_bias)), down, down_bias)


def not_turned_back(x, *weights):
    y = by_einsum(x, *weights)
    return y.mT if x.shape[1] == x.shape[2] else y


def by_variance(x):
    """The squared distance is the variance over the tokens, times their number."""
    spread = x.var(1, correction=0).sum(-1)  # [batch]
    return (spread / x.square().sum(-1).mean(1)).sqrt()


def faulty_distance(x, axes=1, power=1, over=(1, 2), divide=True):
    away = x - x.mean(axes, keepdim=True)
    share = away.square().sum(over) / (x.square().sum(over) if divide else 1)
    return (share ** (power / 2)).expand(len(x))


def by_layer_norm(x, weight, bias, eps):
    u, v = x.chunk(2, -1)
    v = F.layer_norm(v, v.shape[-1:], eps=eps)
    return u * F.linear(v.mT, weight, bias).mT


def faulty_gate(
    x,
    weight,
    bias,
    eps,
    swap=False,
    even=False,
    norm=-1,
    both=False,
    join=torch.mul,
    table=None,
    late=False,
    correction=0,
    first=False,
):
    """The gate with one step replaced by each option."""
    u, v = (x[..., ::2], x[..., 1::2]) if even else x.chunk(2, -1)
    u, v = (v, u) if swap else (u, v)

    def normed(y):
        if norm is None:
            return y
        variance = y.var(norm, keepdim=True, correction=correction)
        return (y - y.mean(norm, keepdim=True)) / (variance + eps).sqrt()

    u = normed(u) if both else u
    weight = weight if table is None else table(weight)
    if first:
        return join(u, weight @ (normed(v) + bias[:, None]))
    mixed = weight @ normed(v)
    return join(u, mixed) + bias[:, None] if late else join(u, mixed + bias[:, None])


def by_matrices(x, up, up_bias, down, down_bias, old, new):
    """Interpolates with a matrix, found from the unit vectors."""
    before = old[0] * old[1]
    units = torch.eye(before).view(before, 1, *old)
    finer = F.interpolate(units, new, mode="bilinear").view(before, -1)  # [old, new]
    mixed = (before / finer.shape[1]) * torch.einsum("ho,on,bnd->bhd", up, finer, x)
    hidden = F.gelu(mixed + up_bias[:, None])
    return torch.einsum("on,oh,bhd->bnd", finer, down, hidden) + (finer.T @ down_bias)[:, None]


def faulty_resized(
    x,
    up,
    up_bias,
    down,
    down_bias,
    old,
    new,
    gelu=F.gelu,
    mode="bilinear",
    corners=False,
    factor=lambda share: share,
    scales=(1, 0, 0, 0),
    turn=False,
    one=False,
    biases=(1, 1),
    stream=False,
):
    """The layer with one step replaced by each option."""
    before, after = old[0] * old[1], new[0] * new[1]

    def finer(rows):  # [..., old tokens] -> [..., new tokens]
        if one:
            return F.interpolate(rows.reshape(-1, 1, before), after, mode="linear").view(
                *rows.shape[:-1], after
            )
        grids = (old[::-1], new[::-1]) if turn else (old, new)
        pictures = rows.reshape(-1, 1, *grids[0])
        options = {} if mode == "nearest" else {"align_corners": corners}
        found = F.interpolate(pictures, grids[1], mode=mode, **options)
        return found.reshape(*rows.shape[:-1], after)

    share = factor(before / after)
    s = [share if scale else 1 for scale in scales]
    u = F.linear(x.mT, finer(up) * s[0], up_bias * biases[0] * s[1])
    y = F.linear(gelu(u), finer(down.T).T * s[2], finer(down_bias) * biases[1] * s[3]).mT
    return x + y if stream else y


CORRECT = {
    "mix_tokens": by_einsum,
    "distance_from_alike": by_variance,
    "spatial_gate": by_layer_norm,
    "resized_mixing": by_matrices,
}

WRONG = {
    "mix_tokens": [
        ("down_bias. It is not used", partial(faulty_mixing, biases=(1, 0))),
        ("x is added", partial(faulty_mixing, stream=1)),
        ("applied to the result", partial(faulty_mixing, last=F.gelu)),
        ("There is no GELU", partial(faulty_mixing, gelu=lambda u: u)),
        ("a ReLU", partial(faulty_mixing, gelu=F.relu)),
        ("approximate", partial(faulty_mixing, gelu=partial(F.gelu, approximate="tanh"))),
        ("up_bias is not used", partial(faulty_mixing, biases=(0, 1))),
        ("after the GELU", partial(faulty_mixing, late=1)),
        ("features of each token are mixed", untransposed),
        ("transposed back", not_turned_back),
        ("has shape", lambda x, *weights: by_einsum(x, *weights).mT),
    ],
    "distance_from_alike": [
        ("should be divided by the norm of x", partial(faulty_distance, divide=False)),
        ("The root is missing: ", partial(faulty_distance, power=2)),
        ("The root is missing, and", partial(faulty_distance, power=2, divide=False)),
        ("over the features", partial(faulty_distance, axes=2)),
        ("for a whole image", partial(faulty_distance, axes=(1, 2))),
        ("over the batch. Each image has its own mean", partial(faulty_distance, axes=0)),
        ("summed over the batch", partial(faulty_distance, over=(0, 1, 2))),
        (
            "a ratio for each token",
            lambda x: ((x - x.mean(1, True)).norm(dim=2) / x.norm(dim=2)).mean(1),
        ),
    ],
    "spatial_gate": [
        ("halves are swapped", partial(faulty_gate, swap=True)),
        ("even and odd", partial(faulty_gate, even=True)),
        ("U is normed", partial(faulty_gate, both=True)),
        ("before the table", lambda x, w, b, eps: by_layer_norm(x, w, 0 * b, eps)),
        ("V is not normed", partial(faulty_gate, norm=None)),
        ("over the tokens", partial(faulty_gate, norm=1)),
        ("minus one", partial(faulty_gate, correction=1)),
        ("The table is transposed", partial(faulty_gate, table=lambda w: w.T)),
        ("eps is not used", lambda x, w, b, eps: by_layer_norm(x, w, b, 0.0)),
        ("before the table", partial(faulty_gate, first=True)),
        ("after U is multiplied", partial(faulty_gate, late=True)),
    ],
    "resized_mixing": [
        ("up_bias is not used", partial(faulty_resized, biases=(0, 1))),
        ("down_bias is not used", partial(faulty_resized, biases=(1, 0))),
        ("there is no GELU", partial(faulty_resized, gelu=lambda u: u)),
        ("a ReLU", partial(faulty_resized, gelu=F.relu)),
        ("approximate", partial(faulty_resized, gelu=partial(F.gelu, approximate="tanh"))),
        ("x is added", partial(faulty_resized, stream=True)),
        ("corners are aligned", partial(faulty_resized, corners=True)),
        ("nearest", partial(faulty_resized, mode="nearest")),
        ("in one dimension", partial(faulty_resized, one=True)),
        ("grids are swapped", partial(faulty_resized, turn=True)),
        ("down_bias is multiplied", partial(faulty_resized, scales=(1, 0, 0, 1))),
        ("up should be multiplied", partial(faulty_resized, scales=(0, 0, 0, 0))),
        ("the other way round", partial(faulty_resized, factor=lambda share: 1 / share)),
        ("to up_bias, too", partial(faulty_resized, scales=(1, 1, 0, 0))),
        ("down is multiplied", partial(faulty_resized, scales=(1, 0, 1, 0))),
    ],
}

EQUIVALENT = {
    "mix_tokens": {},
    "distance_from_alike": {
        "away = x - x.mean(1, keepdim=True) -> away = x.mean(1, keepdim=True) - x": (
            "a norm does not see the sign"
        ),
    },
    "spatial_gate": {},
    "resized_mixing": {
        "bias = resampled(down_bias[None])[0] -> bias = resampled(down_bias[None])[-1]": (
            "there is one row"
        ),
    },
}
