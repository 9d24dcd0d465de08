"""Chapter 2: answers that learners might give."""

import math
from functools import partial

import torch
import torch.nn.functional as F


def without_mask(q, k, v, mask=None):
    scores = torch.einsum("...id,...jd->...ij", q * q.shape[-1] ** -0.5, k)
    return torch.einsum("...ij,...jv->...iv", scores.softmax(-1), v)


def fill(scores, mask):
    return scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0)


def fill_with(number):
    return lambda scores, mask: scores.masked_fill(~mask, number).softmax(-1)


def faulty_attention(q, k, v, mask=None, divisor=lambda q: q.shape[-1] ** 0.5, mask_with=fill):
    """Attention with one step replaced."""
    scores = q @ k.mT / divisor(q)
    return (scores.softmax(-1) if mask is None else mask_with(scores, mask)) @ v


def softmax_of_allowed(scores, mask):
    allowed = torch.where(mask, scores, -math.inf)
    highest = allowed.amax(dim=-1, keepdim=True).clamp(min=-1e30)
    weights = torch.exp(allowed - highest)
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def normalised(weights):
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def share_by_traces(w_q, w_k):
    """|A|^2 = (|B|^2 - tr B^2) / 2, from [d_head, d_head] matrices only."""
    square = ((w_q.T @ w_q) * (w_k.T @ w_k)).sum().item()
    cross = w_k.T @ w_q
    return (1 - (cross @ cross).trace().item() / square) / 2


def norms(w_q, w_k):
    """Norms of the antisymmetric part, the symmetric part and the whole."""
    b = w_q @ w_k.T
    return (b - b.T).norm() / 2, (b + b.T).norm() / 2, b.norm()


def heads_one_by_one(x, w_q, w_kv, w_out, heads):
    d_head = x.shape[-1] // heads
    groups = w_kv.shape[-1] // (2 * d_head)
    output = 0
    for head in range(heads):
        own = torch.arange(head * d_head, (head + 1) * d_head)
        shared = torch.arange(d_head) + head * groups // heads * d_head
        k, v = (x @ w_kv[:, shared + part * groups * d_head] for part in range(2))
        output = output + F.scaled_dot_product_attention(x @ w_q[:, own], k, v) @ w_out[own]
    return output


def split_right(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_right(x):
    return x.transpose(1, 2).flatten(2)


def faulty_heads(
    x,
    w_qkv,
    w_out,
    heads,
    order="qkv",
    attend=faulty_attention,
    split=split_right,
    merge=merge_right,
    project=torch.matmul,
):
    """Multi-head attention with one step replaced."""
    parts = dict(zip(order, (x @ w_qkv).chunk(3, dim=-1), strict=True))
    q, k, v = (split(parts[name], heads) for name in "qkv")
    return project(merge(attend(q, k, v)), w_out)


def two_passes(q, k, v, chunk):
    """First the logarithm of each row's sum of exponentials, then the output."""
    q = q * q.shape[-1] ** -0.5
    log_sum = torch.full(q.shape[:-1], -math.inf)
    for k_chunk in k.split(chunk, dim=-2):
        log_sum = torch.logaddexp(log_sum, torch.logsumexp(q @ k_chunk.mT, dim=-1))
    output = 0
    for k_chunk, v_chunk in zip(k.split(chunk, dim=-2), v.split(chunk, dim=-2), strict=True):
        output = output + torch.exp(q @ k_chunk.mT - log_sum[..., None]) @ v_chunk
    return output


def faulty_chunks(
    q, k, v, chunk, start=-math.inf, rescale_sum=True, rescale_output=True, use_max=True, kept=None
):
    """Online softmax with one step replaced; kept is a list that takes every chunk's weights."""
    highest, total, output = torch.full((*q.shape[:-1], 1), start), 0, 0
    for k_chunk, v_chunk in zip(k.split(chunk, dim=-2), v.split(chunk, dim=-2), strict=True):
        scores = q @ k_chunk.mT / q.shape[-1] ** 0.5
        new = torch.maximum(highest, scores.amax(-1, keepdim=True))
        scale = torch.exp(highest - new) if use_max else 1
        weights = torch.exp(scores - new if use_max else scores)
        total = total * (scale if rescale_sum else 1) + weights.sum(-1, keepdim=True)
        output = output * (scale if rescale_output else 1) + weights @ v_chunk
        highest = new
        if kept is not None:
            kept.append(weights)
    return output / total


CORRECT = {
    "scaled_dot_product_attention": without_mask,
    "multi_head": lambda x, w_qkv, w_out, heads: heads_one_by_one(
        x, w_qkv[:, : len(w_out)], w_qkv[:, len(w_out) :], w_out, heads
    ),
    "masked_softmax": softmax_of_allowed,
    "antisymmetric_share": share_by_traces,
    "grouped_query_attention": heads_one_by_one,
    "chunked_attention": two_passes,
}

WRONG = {
    "scaled_dot_product_attention": [
        ("axes are in another order", lambda q, k, v, mask=None: without_mask(q, k, v).mT),
        ("third query may attend", partial(faulty_attention, mask_with=fill_with(-math.inf))),
        ("it is inverted", partial(faulty_attention, mask_with=lambda s, m: fill(s, ~m))),
        (
            "and those of others be 0",
            partial(faulty_attention, mask_with=lambda s, m: fill(s / 2, m)),
        ),
        (
            "should get zeros",
            partial(faulty_attention, mask_with=lambda s, m: s.masked_fill(~m, -1e9).softmax(-1)),
        ),
    ],
    "multi_head": [
        ("in another order. They", partial(faulty_heads, order="kqv")),
        ("in another order. They", partial(faulty_heads, order="vqk")),
    ],
    "masked_softmax": [
        ("multiplied by the mask", lambda scores, mask: (scores * mask).softmax(-1)),
        ("penalty of finite size", lambda scores, mask: (scores - 1.0 * ~mask).softmax(-1)),
        ("mask is inverted", lambda s, mask: s.masked_fill(mask, -math.inf).softmax(-1)),
        ("over the queries", lambda s, mask: s.masked_fill(~mask, -math.inf).softmax(-2)),
        ("Here they are NaN", lambda s, mask: s.masked_fill(~mask, -math.inf).softmax(-1)),
        ("Here they sum to 1", lambda s, mask: s.masked_fill(~mask, -1e9).softmax(-1)),
        ("result overflows", lambda scores, mask: normalised(scores.exp() * mask)),
        ("0 * infinity", lambda scores, mask: (scores - math.inf * ~mask).softmax(-1)),
        ("proportional to exp(score)", lambda s, mask: softmax_of_allowed(s / 2, mask)),
        ("should not change", lambda s, m: softmax_of_allowed(s, m) * m.any(-1).all()),
    ],
    "antisymmetric_share": [
        ("not by that of its", lambda a, b: (norms(a, b)[0] / norms(a, b)[1]) ** 2),
    ],
    "chunked_attention": [
        ("around 10000 the result overflows", partial(faulty_chunks, use_max=False)),
        ("around -10000 the result overflows", partial(faulty_chunks, start=0.0)),
        ("formed at once", lambda q, k, v, chunk: faulty_chunks(q, k, v, k.shape[-2])),
        ("chunk size that is given", lambda q, k, v, chunk: faulty_chunks(q, k, v, 32)),
        ("At the worst moment", lambda q, k, v, chunk: faulty_chunks(q, k, v, chunk, kept=[])),
    ],
}

SAME_WIDTH = "q and k have the same last axis"
FOUR_AXES = "with four axes, axis 2 is axis -2"
KIND_ONLY = "a new tensor takes from the one it is made with only dtype and device, equal for all"
BROADCAST = "without leading axes it broadcasts in the first chunk, which gives it the right shape"

HEADS = (
    "scores = q @ k.transpose(-2, -1) / math.sqrt(d_head)"
    " -> scores = q @ k.transpose({}, -1) / math.sqrt(d_head)"
)
MAXIMUM = (
    "running_max = q.new_full((*q.shape[:-1], 1), -math.inf)"
    " -> running_max = {}.new_full((*q.shape[:{}], 1), -math.inf)"
)
OUTPUT = (
    "output = q.new_zeros((*q.shape[:-1], v.shape[-1]))"
    " -> output = {}.new_zeros((*q.shape[:{}], v.shape[-1]))"
)
LOOP = "for start in range(0, k.shape[-2], chunk): -> for start in range(0, v.shape[-2], chunk):"
SUM = "running_sum = torch.zeros_like(running_max) -> running_sum = torch.ones_like(running_max)"

EQUIVALENT = {
    "scaled_dot_product_attention": {
        "scores = q @ k.mT / math.sqrt(q.shape[-1]) -> scores = q @ k.mT / math.sqrt(k.shape[-1])": (
            SAME_WIDTH
        ),
    },
    "antisymmetric_share": {
        "antisymmetric = (b - b.T) / 2 -> antisymmetric = (b.T - b) / 2": "the sign is squared",
    },
    "grouped_query_attention": {HEADS.format(2): FOUR_AXES},
    "chunked_attention": {
        "q = q / math.sqrt(q.shape[-1]) -> q = q / math.sqrt(k.shape[-1])": SAME_WIDTH,
        LOOP: "there are as many values as keys",
        MAXIMUM.format("k", -1): KIND_ONLY,
        MAXIMUM.format("v", -1): KIND_ONLY,
        MAXIMUM.format("q", "-0"): BROADCAST,
        OUTPUT.format("k", -1): KIND_ONLY,
        OUTPUT.format("v", -1): KIND_ONLY,
        OUTPUT.format("q", "-0"): BROADCAST,
        SUM: "the first chunk multiplies it by exp(-inf) = 0",
    },
}
