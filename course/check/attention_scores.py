"""Exercises of chapter 02 about scores and weights.

What is expected comes from loops and plain softmax, never from minivit: a mistake in the package
must not make a wrong answer right.
"""

import math

import torch
from torch import Tensor

from course.check.attempt import Attempt, close, normal_draws
from course.check.exercise import exercise

CHAPTER = "02_attention"


@exercise(CHAPTER)
def scaled_scores(attempt: Attempt) -> None:
    """q [batch, heads, queries, d_head], k [batch, heads, keys, d_head] -> scores."""
    batch, heads, queries, keys = 2, 3, 5, 7
    normal = normal_draws(seed=0)
    for d_head in (6, 11):  # the second catches a number typed in
        q, k = normal(batch, heads, queries, d_head), normal(batch, heads, keys, d_head)
        products = torch.einsum("bhqd,bhkd->bhqk", q, k)
        scores = attempt(q, k, shape=dict(batch=batch, heads=heads, queries=queries, keys=keys))

        attempt.expect(
            not close(scores.sum(-1), torch.ones(batch, heads, queries)),
            "Every row sums to one: the softmax is applied already. Return the scores before it.",
        )
        divisor = (products * scores).sum() / scores.square().sum()
        attempt.expect(
            close(divisor * scores, products),
            "Apart from one common factor, entry [b, h, i, j] should be the dot product of query i "
            "and key j.",
        )
        right = f"the square root of d_head = {d_head}"
        attempt.expect_close(
            scores,
            products / math.sqrt(d_head),
            f"The dot products are divided by {divisor:.4g}; they should be divided by {right}.",
            mistakes={
                f"The dot products are not scaled. Divide them by {right}.": products,
                f"You divide by d_head itself. Divide by {right}.": products / d_head,
                f"You divide by the square root of the number of keys. Divide by {right}.": (
                    products / math.sqrt(keys)
                ),
                f"You divide by the square root of heads * d_head. Each head is scaled by its own "
                f"width: divide by {right}.": products / math.sqrt(heads * d_head),
            },
        )


@exercise(CHAPTER)
def masked_softmax(attempt: Attempt) -> None:
    """scores [..., queries, keys], a bool mask that broadcasts to it -> weights."""
    batch, heads, queries, keys = 2, 3, 5, 7
    shape = dict(batch=batch, heads=heads, queries=queries, keys=keys)
    scores = normal_draws(seed=1)(batch, heads, queries, keys)
    # Every query and every key has both: something allowed and something forbidden.
    mask = (torch.arange(queries)[:, None] + torch.arange(keys)) % 3 != 0  # [queries, keys]
    weights = attempt(
        scores,
        mask,
        shape=shape,
        if_not_finite="The result contains NaN, though every query may attend to something. Note "
        "that 0 * infinity is NaN: fill scores in rather than multiply by the mask.",
    )

    attempt.expect(
        bool(weights[..., mask].any()) or not weights[..., ~mask].any(),
        "Only the forbidden keys have weight: the mask is inverted. True means allowed.",
    )
    attempt.expect(
        not close(weights.sum(-2), torch.ones(batch, heads, keys)),
        "The weights sum to one over the queries. Take the softmax over the keys, the last axis.",
    )
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
    attempt.expect_close(
        weights.sum(-1),
        torch.ones(batch, heads, queries),
        "The weights of each query should sum to one over the allowed keys. If the forbidden ones "
        "are zeroed after the softmax, their share is missing.",
    )
    attempt.expect_close(
        weights,
        softmax_by_rows(scores, mask),
        "The weights of allowed keys sum to one, but should be proportional to exp(score).",
    )

    padding = torch.arange(keys) < torch.tensor([4, 6])[:, None, None, None]
    weights = attempt(scores, padding, shape=shape)
    attempt.expect_close(
        weights,
        softmax_by_rows(scores, padding),
        "A mask of shape [batch, 1, 1, keys] should broadcast over heads and queries.",
    )

    # Far apart, so that one key takes all; then rounding such scores does no harm.
    for forbidden in (-1e5, 1e5):
        large = torch.where(mask, 1e4 * scores, forbidden)
        weights = attempt(
            large,
            mask,
            shape=shape,
            if_not_finite="For scores as large as 10000 the result overflows or is 0 / 0. Subtract "
            "the maximum of the allowed keys before exp, or use torch.softmax.",
        )
        attempt.expect_close(
            weights,
            softmax_by_rows(large, mask),
            "With large scores the weights are wrong. The maximum to subtract is that of the "
            "allowed keys, and a penalty must outweigh any score.",
        )

    some_empty = mask.clone()
    some_empty[2] = False
    empty = "The third query may attend to nothing: its weights should all be 0."
    weights = attempt(
        scores, some_empty, shape=shape, if_not_finite=f"{empty} Here they are NaN, which is 0 / 0."
    )
    attempt.expect(
        not weights[..., 2, :].any(), f"{empty} Here they sum to {weights[0, 0, 2].sum():.4g}."
    )
    attempt.expect_close(
        weights,
        softmax_by_rows(scores, some_empty),
        "One query with nothing allowed should not change the weights of the others.",
    )


def softmax_by_rows(scores: Tensor, mask: Tensor) -> Tensor:
    """Each row's softmax over its allowed keys, in a loop; nothing allowed gives zeros."""
    weights = torch.zeros_like(scores)
    mask = mask.expand_as(scores)
    for row in torch.cartesian_prod(*(torch.arange(size) for size in scores.shape[:-1])):
        row = tuple(row.tolist())
        weights[row][mask[row]] = torch.softmax(scores[row][mask[row]], dim=0)
    return weights


@exercise(CHAPTER)
def antisymmetric_share(attempt: Attempt) -> None:
    """w_q, w_k [dim, d_head] -> |antisymmetric part of B|^2 / |B|^2 with B = w_q w_k^T."""
    dim, d_head = 6, 4
    normal = normal_draws(seed=2)
    w_q, w_k = normal(dim, d_head), normal(dim, d_head)
    attempt.expect_close(
        attempt(w_q, w_q.clone()),
        torch.tensor(0.0),
        "With w_k = w_q the matrix B is symmetric, so the share is 0.",
        mistakes={
            "With w_k = w_q the share is 0, and 1 is returned: this is the share of the symmetric "
            "part.": torch.tensor(1.0)
        },
    )

    e_1, e_2 = torch.eye(dim)[:2]
    pure_q, pure_k = torch.stack([e_1, e_2], dim=1), torch.stack([e_2, -e_1], dim=1)
    attempt.expect_close(
        attempt(
            pure_q,
            pure_k,
            if_not_finite="For a purely antisymmetric B the result is not finite. Divide by the "
            "squared norm of B, not by that of its symmetric part, which is 0 here.",
        ),
        torch.tensor(1.0),
        "A purely antisymmetric B should have share 1.",
        mistakes={
            "A purely antisymmetric B should have share 1, and 4 is returned. The antisymmetric "
            "part is half of B - B^T.": torch.tensor(4.0)
        },
    )

    b = torch.einsum("if,jf->ij", w_q, w_k)  # [dim, dim]
    small = w_q.T @ w_k  # [d_head, d_head]
    attempt.expect_close(
        attempt(w_q, w_k),
        share_by_entries(b),
        "For random w_q and w_k the share is wrong.",
        mistakes={
            "This is the ratio of the norms. The share is the ratio of their squares, so that the "
            "shares of both parts sum to one.": share_by_entries(b).sqrt(),
            "This is the share for w_q.T @ w_k, a [d_head, d_head] matrix. The matrix between "
            "tokens is B = w_q @ w_k.T, [dim, dim].": share_by_entries(small),
        },
    )


def share_by_entries(b: Tensor) -> Tensor:
    """The antisymmetric share of a square matrix, entry by entry."""
    size = len(b)
    pairs = [(b[i, j] - b[j, i]) / 2 for i in range(size) for j in range(size)]
    return torch.stack(pairs).square().sum() / b.flatten().square().sum()
