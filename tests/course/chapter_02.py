import math
from functools import partial

import torch
import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = torch.einsum("...id,...jd->...ij", q * q.shape[-1] ** -0.5, k)
    return torch.einsum("...ij,...jv->...iv", scores.softmax(-1), v)


def fill(scores, mask):
    return scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0)


def masked_by(weights):
    """Attention with another way to use a mask."""

    def attention(q, k, v, mask=None):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return (scores.softmax(-1) if mask is None else weights(scores, mask)) @ v

    return attention


def masked_softmax(scores, mask):
    allowed = torch.where(mask, scores, -math.inf)
    highest = allowed.amax(dim=-1, keepdim=True).clamp(min=-1e30)
    return normalised(torch.exp(allowed - highest))


def normalised(weights):
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def antisymmetric_share(w_q, w_k):
    """|A|^2 = (|B|^2 - tr B^2) / 2, from [d_head, d_head] matrices only."""
    square = ((w_q.T @ w_q) * (w_k.T @ w_k)).sum().item()
    cross = w_k.T @ w_q
    return (1 - (cross @ cross).trace().item() / square) / 2


def grouped_query_attention(x, w_q, w_kv, w_out, heads):
    """Torch itself shares keys and values among heads."""
    sizes = (-1, x.shape[-1] // heads)
    q, kv = ((x @ w).unflatten(-1, sizes).transpose(1, 2) for w in (w_q, w_kv))
    z = F.scaled_dot_product_attention(q, *kv.chunk(2, dim=1), enable_gqa=True)
    return z.transpose(1, 2).flatten(2) @ w_out


def multi_head(x, w_qkv, w_out, heads):
    dim = len(w_out)
    return grouped_query_attention(x, w_qkv[:, :dim], w_qkv[:, dim:], w_out, heads)


def chunked_attention(q, k, v, chunk):
    """First the logarithm of each row's sum of exponentials, then the output."""
    q = q * q.shape[-1] ** -0.5
    log_sum = torch.full(q.shape[:-1], -math.inf)
    for k_chunk in k.split(chunk, dim=-2):
        log_sum = torch.logaddexp(log_sum, torch.logsumexp(q @ k_chunk.mT, dim=-1))
    output = 0
    for k_chunk, v_chunk in zip(k.split(chunk, dim=-2), v.split(chunk, dim=-2), strict=True):
        output = output + torch.exp(q @ k_chunk.mT - log_sum[..., None]) @ v_chunk
    return output


def at_once(q, k, v, chunk, shift=lambda highest: highest):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = torch.exp(scores - shift(scores.amax(-1, keepdim=True)))
    return weights @ v / weights.sum(-1, keepdim=True)


def keeping_scores(q, k, v, chunk):
    kept = [q @ k_chunk.mT for k_chunk in k.split(chunk, dim=-2)]
    return chunked_attention(q, k, v, chunk) + 0 * kept[0].sum()


def heads_by(split=None):
    """Multi-head attention, perhaps with another way to split [batch, tokens, dim]."""

    def attention(x, w_qkv, w_out, heads):
        batch, tokens, dim = x.shape
        sizes = batch, heads, tokens, dim // heads
        cut = split or (lambda t, sizes: t.reshape(batch, tokens, heads, -1).transpose(1, 2))
        q, k, v = (cut(t, sizes) for t in (x @ w_qkv).chunk(3, -1))
        heads = F.scaled_dot_product_attention(q, k, v)
        return heads.transpose(1, 2).reshape(batch, tokens, dim) @ w_out

    return attention


ALSO_RIGHT = [
    ("scaled_dot_product_attention", lambda q, k, v, *mask: scaled_dot_product_attention(q, k, v)),
    ("multi_head", heads_by()),
]  # fmt: skip

WRONG = [
    ("scaled_dot_product_attention", "third query may attend", masked_by(lambda s, m: s.masked_fill(~m, -math.inf).softmax(-1))),
    ("scaled_dot_product_attention", "it is inverted", masked_by(lambda s, m: fill(s, ~m))),
    ("scaled_dot_product_attention", "and those of others be 0", masked_by(lambda s, m: fill(s / 2, m))),
    ("scaled_dot_product_attention", "should get zeros", masked_by(lambda s, m: s.masked_fill(~m, -1e9).softmax(-1))),
    ("scaled_dot_product_attention", "be (q, k, v, mask=None)", lambda q, k, v: scaled_dot_product_attention(q, k, v)),
    ("scaled_dot_product_attention", "Swap the last two", lambda q, k, v, m=None: (q @ k.permute(3, 2, 1, 0)).softmax(-1) @ v),
    ("multi_head", "in another order. They", lambda x, w, *rest: multi_head(x, w.roll(len(w), 1), *rest)),
    ("multi_head", "Only where heads are merged", heads_by(split=lambda t, sizes: t.view(sizes))),
    ("masked_softmax", "multiplied by the mask", lambda scores, mask: (scores * mask).softmax(-1)),
    ("masked_softmax", "penalty of finite size", lambda scores, mask: (scores - 1.0 * ~mask).softmax(-1)),
    ("masked_softmax", "mask is inverted", lambda s, mask: s.masked_fill(mask, -math.inf).softmax(-1)),
    ("masked_softmax", "over the queries", lambda s, mask: s.masked_fill(~mask, -math.inf).softmax(-2)),
    ("masked_softmax", "Here they are NaN", lambda s, mask: s.masked_fill(~mask, -math.inf).softmax(-1)),
    ("masked_softmax", "Here they sum to 1", lambda s, mask: s.masked_fill(~mask, -1e9).softmax(-1)),
    ("masked_softmax", "result overflows", lambda scores, mask: normalised(scores.exp() * mask)),
    ("masked_softmax", "0 * infinity", lambda scores, mask: (scores - math.inf * ~mask).softmax(-1)),
    ("antisymmetric_share", "not by that of its", lambda *w: (s := torch.tensor(antisymmetric_share(*w))) / (1 - s)),
    ("chunked_attention", "around 10000 the result overflows", partial(at_once, shift=lambda highest: 0.0)),
    ("chunked_attention", "around -10000 the result overflows", partial(at_once, shift=lambda h: h.clamp(min=0.0))),
    ("chunked_attention", "formed at once", at_once),
    ("chunked_attention", "chunk size that is given", lambda q, k, v, chunk: chunked_attention(q, k, v, 32)),
    ("chunked_attention", "At the worst moment", keeping_scores),
]  # fmt: skip

EQUIVALENT = [
    ("scaled_dot_product_attention", "q and k have the same last axis", "q.shape[-1] -> k.shape[-1]"),
    ("antisymmetric_share", "the sign is squared", "b - b.T -> b.T - b"),
    ("grouped_query_attention", "with four axes, axis 2 is axis -2", "transpose(-2 -> transpose(2"),
    ("chunked_attention", "q and k have the same last axis", "sqrt(q.shape -> sqrt(k.shape"),
    ("chunked_attention", "there are as many values as keys", "k.shape -> v.shape"),
    ("chunked_attention", "both have the same dtype and device", "q.new_full -> k.new_full | v.new_full", "output = q -> output = k | output = v"),
    ("chunked_attention", "it broadcasts to the right shape in the first chunk", "[:-1], 1 -> [:-0], 1", "[:-1], v -> [:-0], v"),
    ("chunked_attention", "the first chunk multiplies it by exp(-inf) = 0", "zeros_like -> ones_like"),
]  # fmt: skip
