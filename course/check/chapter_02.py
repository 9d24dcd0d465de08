"""Chapter 2: attention, masks, heads."""

import itertools
import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw, Outcomes, close
from course.check.exercise import exercise
from course.check.memory import MemoryMeter

LATE = (
    "The weights are divided by the root after the softmax, so they no longer sum to one. Divide "
    "the scores, before the softmax."
)
OVER_KEYS = "The weights of each query should sum to one over the keys, the last axis."
NO_MASK = {
    "takes 3 positional arguments but 4": "Without a mask the result is right. The function is "
    "also called with one, which it may ignore for now: let its arguments be (q, k, v, mask=None)."
}


def attend(q: Tensor, k: Tensor, v: Tensor, divisor: float, over: int = -1) -> Tensor:
    """Attention with the two things that go wrong most as arguments: scale and softmax axis."""
    return torch.softmax(q @ k.mT / divisor, dim=over) @ v


@exercise("batch, heads, queries, d_v", seed=0)
def scaled_dot_product_attention(attempt: Attempt, normal: Draw) -> None:
    """q [.., queries, d], k [.., keys, d], v [.., keys, d_v], mask -> [.., queries, d_v].

    The mask is explained later in the chapter: an answer may ignore it, but not mistake it.
    """
    batch, heads, queries, keys, d_v = 2, 3, 5, 7, 8
    shape = dict(batch=batch, heads=heads, queries=queries, d_v=d_v)
    for d in (6, 11):  # the second catches a number typed in
        q, k = normal(batch, heads, queries, d), normal(batch, heads, keys, d)
        v = normal(batch, heads, keys, d_v)
        root, right = math.sqrt(d), f"the square root of d, here {d}"
        divisors = {
            d: "d itself",
            math.sqrt(keys): "the square root of the number of keys",
            math.sqrt(d_v): f"the square root of d_v = {d_v}, the width of v",
            math.sqrt(heads * d): "the square root of heads * d, not of each head's own width",
        }
        outcomes = {
            attend(q, k, v, root): "The result should be softmax(q k^T / sqrt(d)) v: for each "
            "query an average of all rows of v, weighted by how well their keys fit.",
            attend(q, k, v, 1): f"The scores are not scaled. Divide them by {right}.",
            attend(q, k, v, 1) / root: LATE,
            q @ k.mT / root @ v: "There is no softmax: the values are summed with the scores.",
            attend(q, k, v, math.sqrt(6)): "You divide by the square root of 6 for every width. "
            "Take the square root of d = 11 from the shape of q.",
        }
        for divisor, name in divisors.items():
            outcomes[attend(q, k, v, divisor)] = f"You divide by {name}. Divide by {right}."
        for axis, name in enumerate(("the batch", "the heads", "the queries")):
            outcomes[attend(q, k, v, root, over=axis)] = f"The softmax is over {name}. {OVER_KEYS}"
        swap = {"must match the size": "Swap the last two axes of k: k.mT. k.T reverses all."}
        attempt.expect_close(attempt(q, k, v, explain=swap), outcomes)
    one = q[0, 0], k[0, 0], v[0, 0]
    outcomes = {
        attend(*one, math.sqrt(d)): "Without batch and heads, for q of shape [queries, d], the "
        "result is wrong. Count axes from the end."
    }
    attempt.expect_close(attempt(*one), outcomes)
    mask = (torch.arange(queries)[:, None] + torch.arange(keys)) % 3 != 0  # [queries, keys]
    mask[2] = False
    message = (
        "Without a mask the result is right. With one it contains NaN: the third query may attend "
        "to nothing, and its softmax is 0 / 0."
    )
    masked = attempt(q, k, v, mask, shape=shape, if_not_finite=message, explain=NO_MASK)
    if close(masked, attend(q, k, v, math.sqrt(d))):  # left for later
        return
    scores = q @ k.mT / math.sqrt(d)
    expected = allowed_softmax(scores, mask) @ v
    there = "Without a mask the result is right. With one it is wrong."
    message = "Without a mask the result is right. With one, it is inverted: True means allowed."
    attempt.expect(not close(masked, allowed_softmax(scores, ~mask) @ v), message)
    outcomes = {
        expected[..., mask.any(-1), :]: f"{there} The weights of the allowed keys should sum to "
        "one, and those of others be 0.",
        (torch.softmax(scores, dim=-1) * mask @ v)[..., mask.any(-1), :]: f"{there} If weights are "
        "set to 0 after the softmax, the others no longer sum to one.",
    }
    attempt.expect_close(masked[..., mask.any(-1), :], outcomes)
    message = f"{there} A query that may attend to nothing should get zeros."
    attempt.expect(close(masked, expected), message)


@exercise(seed=1)
def masked_softmax(attempt: Attempt, normal: Draw) -> None:
    """scores [..., queries, keys], a bool mask that broadcasts to it -> weights."""
    batch, heads, queries, keys = 2, 3, 5, 7
    shape = dict(batch=batch, heads=heads, queries=queries, keys=keys)
    scores = normal(batch, heads, queries, keys)
    # Every query and every key has both: something allowed and something forbidden.
    mask = (torch.arange(queries)[:, None] + torch.arange(keys)) % 3 != 0  # [queries, keys]
    message = (
        "The result contains NaN, though every query may attend to something. Note that 0 * "
        "infinity is NaN: fill scores in rather than multiply by the mask."
    )
    weights = attempt(scores, mask, shape=shape, if_not_finite=message)
    message = "Only the forbidden keys have weight: the mask is inverted. True means allowed."
    attempt.expect(bool(weights[..., mask].any()) or not weights[..., ~mask].any(), message)
    said = "The weights sum to one over the queries. Take the softmax over the keys, the last axis."
    attempt.expect(not close(weights.sum(-2), torch.ones(batch, heads, keys)), said)
    attempt.expect(
        not close(weights, torch.softmax(scores * mask, dim=-1)),
        "The scores are multiplied by the mask, so forbidden keys keep a score of 0, and exp(0) is "
        "1. Their score should be minus infinity.",
    )
    attempt.expect(
        not weights[..., ~mask].any(),
        f"A forbidden key has weight {weights[..., ~mask].max():.3g}, expected exactly 0. A "
        "penalty of finite size lowers a weight but leaves some of it.",
    )
    outcomes: Outcomes = {
        1.0: "The weights of each query should sum to one over the allowed keys. If the forbidden "
        "ones are zeroed after the softmax, their share is missing."
    }
    attempt.expect_close(weights.sum(-1), outcomes)
    message = "The weights of allowed keys sum to one, but should be proportional to exp(score)."
    attempt.expect_close(weights, {allowed_softmax(scores, mask): message})
    padding = torch.arange(keys) < torch.tensor([4, 6])[:, None, None, None]
    weights = attempt(scores, padding, shape=shape)
    message = "A mask of shape [batch, 1, 1, keys] should broadcast over heads and queries."
    attempt.expect_close(weights, {allowed_softmax(scores, padding): message})

    # Far apart, so that one key takes all; then rounding such scores does no harm. Then all low.
    for forbidden, level in ((1e5, 0), (-1e5, -5e4)):
        large = torch.where(mask, 1e4 * scores + level, forbidden)
        message = (
            "For scores as large as 10000 the result overflows or is 0 / 0. Subtract the maximum "
            "of the allowed keys before exp, or use torch.softmax."
        )
        weights = attempt(large, mask, shape=shape, if_not_finite=message)
        outcomes = {
            allowed_softmax(large, mask): "With large scores the weights are wrong. The maximum to "
            "subtract is that of the allowed keys, and a penalty must outweigh any score."
        }
        attempt.expect_close(weights, outcomes)
    some_empty = mask.clone()
    some_empty[2] = False
    empty = "The third query may attend to nothing: its weights should all be 0."
    message = f"{empty} Here they are NaN, which is 0 / 0."
    weights = attempt(scores, some_empty, shape=shape, if_not_finite=message)
    message = f"{empty} Here they sum to {weights[0, 0, 2].sum():.4g}."
    attempt.expect(not weights[..., 2, :].any(), message)
    message = "One query with nothing allowed should not change the weights of the others."
    attempt.expect_close(weights, {allowed_softmax(scores, some_empty): message})


def allowed_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Each row's softmax over its allowed keys; nothing allowed gives zeros."""
    return scores.where(mask, -math.inf).softmax(-1).nan_to_num(0)


@exercise(seed=2)
def antisymmetric_share(attempt: Attempt, normal: Draw) -> None:
    """w_q, w_k [dim, d_head] -> |antisymmetric part of B|^2 / |B|^2 with B = w_q w_k^T."""
    dim, d_head = 6, 4
    w_q, w_k = normal(dim, d_head), normal(dim, d_head)
    outcomes: Outcomes = {
        0.0: "With w_k = w_q the matrix B is symmetric, so the share is 0.",
        1.0: "With w_k = w_q the share is 0. You return 1, the share of the symmetric part.",
    }
    attempt.expect_close(attempt(w_q, w_q.clone()), outcomes)
    e_1, e_2 = torch.eye(dim)[:2]
    pure_q, pure_k = torch.stack([e_1, e_2], dim=1), torch.stack([e_2, -e_1], dim=1)
    outcomes = {
        1.0: "A purely antisymmetric B should have share 1.",
        4.0: "A purely antisymmetric B should have share 1, and 4 is returned. The antisymmetric "
        "part is half of B - B^T.",
    }
    message = (
        "For a purely antisymmetric B the result is not finite. Divide by the squared norm of B, "
        "not by that of its symmetric part, which is 0 here."
    )
    attempt.expect_close(attempt(pure_q, pure_k, if_not_finite=message), outcomes)
    b = w_q @ w_k.T  # [dim, dim]
    outcomes = {
        share_of(b): "For random w_q and w_k the share is wrong.",
        share_of(b).sqrt(): "This is the ratio of the norms. The share is the ratio of their "
        "squares, so that the shares of both parts sum to one.",
        share_of(w_q.T @ w_k): "This is the share for w_q.T @ w_k, a [d_head, d_head] matrix. The "
        "matrix between tokens is B = w_q @ w_k.T, [dim, dim].",
    }
    attempt.expect_close(attempt(w_q, w_k), outcomes)


def share_of(b: Tensor) -> Tensor:
    """The antisymmetric share of a square matrix."""
    return ((b - b.T) / 2).square().sum() / b.square().sum()


def of_one_head(x: Tensor, q: Tensor, k: Tensor, v: Tensor, width: str) -> Outcomes:
    """What goes wrong in a single head, whose width has this name."""
    d = q.shape[-1]
    return {
        attend(q, k, v, math.sqrt(d), over=-2): f"The softmax is over the queries. {OVER_KEYS}",
        attend(q, k, v, 1): f"The scores are not scaled. Divide them by sqrt({width}).",
        attend(q, k, v, 1) / math.sqrt(d): LATE,
        attend(q, k, v, d): "The scores are divided by the width itself, not by its root.",
        v: "The result is v: each query met one key, its own. Let heads and tokens change places "
        "before the scores: queries and keys are [batch, heads, tokens, d].",
        x + attend(q, k, v, math.sqrt(d)): "x is added to the result. Return what attention gives "
        "by itself; a block adds it to x later.",
    }


def of_heads(v: Tensor, heads: int) -> Outcomes:
    """What q = 0 leads to, where every head should give the mean of its own columns of v."""
    batch, tokens, dim = v.shape
    mean = v.mean(1, keepdim=True).expand_as(v)
    own = mean.reshape(batch, tokens, heads, -1).transpose(1, 2)  # [batch, heads, tokens, d]
    cut = v.reshape(own.shape).mean(2, keepdim=True).expand_as(own)
    split = (
        "Splitting into heads mixes up tokens and columns. Cut the columns of a token into heads "
        "first, and then let heads and tokens change places."
    )
    return {
        mean: "With queries of zero each head should give the mean of its own columns of v over "
        "all tokens. Look at how columns are split into heads, and how heads are merged.",
        cut.transpose(1, 2).reshape(v.shape): split,
        cut.reshape(v.shape): split,
        own.reshape(v.shape): "Merging the heads mixes up tokens and columns. Let heads and tokens "
        "change places again before you put the heads side by side.",
        own.mean(1).repeat(1, 1, heads): AVERAGED,
    }


AVERAGED = "The outputs of the heads are averaged. Put them side by side, the first head first."
VIEW = {
    "Use .reshape": "If you split into heads here, neither view nor reshape can make tokens and "
    "heads change places: cut the last axis, [batch, tokens, heads, d], then transpose. Only where "
    "heads are merged, after transposing back, is reshape the repair."
}


def expect_projected(attempt: Attempt, result: Tensor, attended: Tensor, w_out: Tensor) -> None:
    """The output projection is used, and used from the right."""
    outcomes = {
        attended @ w_out: "The output projection is wrong. It is the last step: attended @ w_out.",
        attended: "The output projection w_out is not used.",
        attended @ w_out.T: "w_out is transposed. Multiply by w_out from the right.",
    }
    attempt.expect_close(result, outcomes)


@exercise("batch, tokens, dim", seed=6)
def multi_head(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], w_qkv [dim, 3 dim], w_out [dim, dim], heads -> as x."""
    batch, tokens, dim, heads = 2, 5, 12, 3
    d = dim // heads
    x, w_qkv, w_out = normal(batch, tokens, dim), normal(dim, 3 * dim) / 3, normal(dim, dim)
    identity = torch.eye(dim)
    q, k, v = (x @ w_qkv).split(dim, dim=-1)
    attended = attend(q, k, v, math.sqrt(dim))

    # One head and no output projection: nothing to split or merge.
    result = attempt(x, w_qkv, identity, 1)
    for order in itertools.permutations((q, k, v), 3):
        attempt.expect(
            close(result, attended) or not close(result, attend(*order, math.sqrt(dim))),
            "The columns of w_qkv are read in another order. They give all of q, then all of k, "
            "then all of v.",
        )
    outcomes = {
        attended: "With one head, and the identity as w_out, the result should be softmax(q k^T / "
        "sqrt(d)) v."
    } | of_one_head(x, q, k, v, "d")
    attempt.expect_close(result, outcomes)
    expect_projected(attempt, attempt(x, w_qkv, w_out, 1), attended, w_out)

    no_queries = w_qkv.clone()
    no_queries[:, :dim] = 0
    mixed_q, mixed_k, mixed_v = (x @ no_queries).unflatten(2, (heads, 3, d)).permute(3, 0, 2, 1, 4)
    cut_first = attend(mixed_q, mixed_k, mixed_v, math.sqrt(d)).transpose(1, 2).flatten(2)
    outcomes = of_heads(v, heads) | {
        cut_first: "The columns are cut into heads before they are cut into q, k and v. It is the "
        "other way round: q of all heads, then k, then v."
    }
    told = VIEW | {f"x{d} and {dim}x{dim}": AVERAGED}  # shapes that cannot be multiplied
    attempt.expect_close(attempt(x, no_queries, identity, heads, explain=told), outcomes)

    q_heads, k_heads = (t.reshape(batch, tokens, heads, d).transpose(1, 2) for t in (q, k))
    one_table = attend(q_heads, k_heads, torch.eye(tokens), math.sqrt(d)).mean(1) @ v
    by_head = partial(in_turn, q, w_out, torch.cat([k, v], -1), range(heads))
    outcomes = {
        by_head(math.sqrt(d)): "With several heads the result is wrong. Within q, k and v the "
        "columns of the first head come first, then those of the second, and so on.",
        attended @ w_out: "All columns act as one head. Split q, k and v into heads first.",
        one_table @ w_out: "The weights of the heads are averaged. Each head weights its own "
        "columns of v with its own weights.",
        by_head(math.sqrt(dim)): "The scale is that of the whole width. A head is only d = dim / "
        "heads wide, so divide its scores by sqrt(d).",
    }
    attempt.expect_close(attempt(x, w_qkv, w_out, heads), outcomes)


def in_turn(q: Tensor, w_out: Tensor, kv: Tensor, groups: Sequence[int], divisor: float) -> Tensor:
    """Head by head; groups has the group of each."""
    k, v = kv.chunk(2, dim=-1)
    d = q.shape[-1] // len(groups)
    outputs = []
    for head, group in enumerate(groups):
        own, shared = (slice(i * d, (i + 1) * d) for i in (head, group))
        outputs.append(attend(q[..., own], k[..., shared], v[..., shared], divisor))
    return torch.cat(outputs, dim=-1) @ w_out


@exercise("batch, tokens, dim", seed=3)
def grouped_query_attention(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], w_q, w_out [dim, dim], w_kv [dim, 2 groups d_head], heads -> as x."""
    batch, tokens, dim, heads, groups = 2, 5, 12, 6, 3
    d_head = dim // heads
    x, w_q, w_out = normal(batch, tokens, dim), normal(dim, dim) / 3, normal(dim, dim)
    w_kv = normal(dim, 2 * dim) / 3
    identity = torch.eye(dim)
    q = x @ w_q
    k, v = (x @ w_kv).split(dim, dim=-1)
    attended = attend(q, k, v, math.sqrt(dim))

    # One head and no output projection: nothing to split, share or merge.
    outcomes = {
        attended: "With one head, and the identity as w_out, the result should be softmax(q k^T / "
        "sqrt(d_head)) v.",
        **of_one_head(x, q, k, v, "d_head"),
        attend(q, v, k, math.sqrt(dim)): "The columns of w_kv are read as v, then k. They hold all "
        "of k, then all of v.",
    }
    attempt.expect_close(attempt(x, w_q, w_kv, identity, 1), outcomes)
    expect_projected(attempt, attempt(x, w_q, w_kv, w_out, 1), attended, w_out)

    # q = 0 and a group for each head.
    mixed_v = (x @ w_kv).reshape(batch, tokens, heads, 2, d_head)[..., 1, :].flatten(2)
    outcomes = of_heads(v, heads) | {
        mixed_v.mean(1, keepdim=True).expand_as(x): "Keys and values are read group by group. The "
        "first half of w_kv has the keys of all groups, the second their values.",
        v[..., :d_head].mean(1, True).repeat(1, tokens, heads): "All heads read the first group.",
    }
    attempt.expect_close(attempt(x, 0 * w_q, w_kv, identity, heads, explain=VIEW), outcomes)
    root, by_head = math.sqrt(d_head), partial(in_turn, q, w_out)
    outcomes = {
        by_head(x @ w_kv, range(heads), root): "With as many groups as heads the result is wrong. "
        "Within q, k and v the columns of the first head come first, then those of the second.",
        attended @ w_out: "All columns act as one head. Split q, k and v into heads first.",
        by_head(x @ w_kv, range(heads), math.sqrt(dim)): "The scale is that of the whole width. A "
        "head is only d_head = dim / heads wide, so divide its scores by sqrt(d_head).",
    }
    attempt.expect_close(attempt(x, w_q, w_kv, w_out, heads), outcomes)
    few = normal(dim, 2 * groups * d_head) / 3
    neighbours, in_rotation = [0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 2]
    outcomes = {
        by_head(x @ few, neighbours, root): "With fewer groups than heads the result is wrong. "
        "Each group serves heads / groups heads.",
        by_head(x @ few, in_rotation, root): "The groups are dealt out in rotation. Neighbouring "
        "heads share one: of 6 heads and 3 groups, the first two heads share the first group.",
        by_head(x @ few, [0] * heads, root): "All heads read the first group.",
    }
    attempt.expect_close(attempt(x, w_q, few, w_out, heads), outcomes)
    one = normal(dim, 2 * d_head) / 3
    outcomes = {
        by_head(x @ one, [0] * heads, root): "With one group for all heads the result is wrong. "
        "The number of groups follows from the width of w_kv: each takes d_head columns for k and "
        "as many for v."
    }
    attempt.expect_close(attempt(x, w_q, one, w_out, heads), outcomes)


@exercise("batch, heads, queries, d_v", seed=4)
def chunked_attention(attempt: Attempt, normal: Draw) -> None:
    """q [.., queries, d], k [.., keys, d], v [.., keys, d_v], chunk -> [.., queries, d_v]."""
    batch, heads, queries, keys, d, d_v, chunk = 2, 3, 5, 12, 4, 6, 4
    # Scores fall from the first key to the last, so the maximum is in the first chunk.
    q, v = normal(batch, heads, queries, d).abs(), normal(batch, heads, keys, d_v)
    # Their steps differ, as do therefore the sums of the chunks' own exponentials.
    steps = torch.linspace(2, 0, keys).square() - 2
    falling = normal(batch, heads, 1, d).abs() * steps[:, None]
    expected = attend(q, falling, v, math.sqrt(d))
    outcomes = {
        expected: "With all keys in one chunk the result should be plain attention.",
        attend(q, falling, v, 1): "The scores are not scaled. Divide by sqrt(d).",
    }
    attempt.expect_close(attempt(q, falling, v, keys), outcomes)
    pieces = zip(falling.split(chunk, dim=-2), v.split(chunk, dim=-2), strict=True)
    separate = torch.stack([attend(q, *piece, math.sqrt(d)) for piece in pieces])
    scores = (q @ falling.mT / math.sqrt(d)).unflatten(-1, (-1, chunk))  # [.., chunks, chunk]
    sums = (scores - scores.amax(-1, keepdim=True)).exp().sum(-1).movedim(-1, 0)[..., None]
    outcomes = {
        expected: "With several chunks the result is wrong, even if the first holds the maximum.",
        separate.mean(0): "The outputs of the chunks are averaged. Weight each by the sum of its "
        "exponentials.",
        (separate * sums).sum(0) / sums.sum(0): "Each chunk subtracts a maximum of its own, so the "
        "sums do not fit together. When the maximum moves, multiply the running sum and the "
        "running output by exp(old maximum - new maximum).",
        separate.sum(0): "Each chunk has its own softmax, and the outputs are summed. Divide once, "
        "at the end, by the sum of the exponentials of all chunks.",
    }
    attempt.expect_close(attempt(q, falling, v, chunk), outcomes)
    outcomes = {
        expected: "When a later chunk brings a larger maximum the result is wrong. The running sum "
        "and the running output must both be multiplied by exp(old maximum - new maximum)."
    }
    attempt.expect_close(attempt(q, falling.flip(-2), v.flip(-2), chunk), outcomes)
    q, k, v = normal(queries, d), normal(11, d), normal(11, d_v)  # no leading axes, 4 + 4 + 3 keys
    for size in (4, 50):
        outcomes = {
            attend(q, k, v, math.sqrt(d)): f"With 11 keys and chunk = {size} the result is wrong.",
            attend(q, k[:8], v[:8], math.sqrt(d)): "The last chunk is dropped when it is not full: "
            "11 keys make chunks of 4, 4 and 3.",
        }
        attempt.expect_close(attempt(q, k, v, size), outcomes)

    # Far apart, so that one key takes all; then rounding such scores does no harm.
    q = 10 * (normal(queries, d).abs() + 1)
    k = 100 * torch.tensor([5.0, 3, 8, 1, 11, 7, 2, 10, 4, 9, 6])[:, None].expand(11, d)
    for sign in (1, -1):
        around = f"around {sign * 10000}"
        message = (
            f"With scores {around} the result overflows or is 0 / 0. Subtract the running maximum "
            "before exp, and start it at minus infinity."
        )
        result = attempt(q, sign * k, v, 4, if_not_finite=message)
        message = f"With scores {around} the result is wrong."
        attempt.expect_close(result, {attend(q, sign * k, v, math.sqrt(d)): message})

    # The memory rule, with many queries so that scores outweigh copies of q, k and v.
    queries, keys, d, d_v, chunk = 128, 64, 3, 5, 2
    q, k, v = normal(queries, d), normal(keys, d), normal(keys, d_v)
    meter = MemoryMeter(q, k, v)
    attempt(q, k, v, chunk, shape=dict(queries=queries, d_v=d_v), within=meter)
    full = queries * keys
    attempt.expect(
        meter.largest < full,
        f"The scores of all {keys} keys are formed at once: a tensor of {meter.largest} numbers "
        f"is made for {queries} queries. Multiply q by one chunk of k at a time.",
    )
    # Room for products of every score with d or d_v numbers, written without matmul.
    attempt.expect(
        meter.largest <= queries * chunk * max(d, d_v),
        f"A tensor of {meter.largest} numbers is made for {queries} queries and chunk = {chunk}, "
        f"where {queries * chunk} scores are needed. Use the chunk size that is given.",
    )
    attempt.expect(
        meter.peak < full,
        f"At the worst moment {meter.peak} numbers are kept, as many as all scores together. Keep "
        "sums, not the scores of the chunks before.",
    )
