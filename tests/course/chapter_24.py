import torch


def share_to(weights, chosen):
    to_chosen = torch.einsum("bqk,bk->bq", weights, chosen.to(weights.dtype))
    return to_chosen / (weights @ torch.ones_like(weights[0, 0]))


def with_registers(x, registers, blocks):
    count = registers.shape[0]
    x = torch.cat([torch.stack([registers] * x.shape[0]), x], dim=1)
    for block in blocks:
        x = block(x)
    return x[:, count:]


def outlier_share(tokens):
    norms = tokens.square().sum(-1).sqrt().flatten()
    middle = norms.sort().values[(len(norms) - 1) // 2]
    return (norms > 3 * middle).sum() / len(norms)


def softmax_plus_one(scores):
    nothing = torch.zeros_like(scores[..., :1])
    return torch.cat([scores, nothing], -1).softmax(-1)[..., :-1]


def sigmoid_weights(scores):
    n = scores.shape[-1]
    return 1 / (1 + n * torch.exp(-scores))


def streaming_mask(n, sinks, window):
    far = torch.arange(n)[:, None] - torch.arange(n)
    return (far >= 0) & ((far < window) | (torch.arange(n) < sinks))


EQUIVALENT = [
    ("outlier_share", "no norm is three medians exactly", "norms > 3 -> norms >= 3"),
    ("streaming_mask", "a sum of booleans is their or", "sinks) | (j -> sinks) + (j"),
    ("streaming_mask", "a product of booleans is their and", "kept & (j -> kept * (j"),
]
