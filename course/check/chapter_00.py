"""Chapter 0: the three lines of a vision transformer that are the reader's."""

import math

from course.check.attempt import Attempt, Draw, normal_draws
from course.check.chapter_04 import PARTS
from course.check.exercise import exercise


@exercise("batch, heads, queries, keys", seed=1)
def scaled_scores(attempt: Attempt, normal: Draw) -> None:
    """q and k [batch, heads, tokens, d] -> [batch, heads, tokens, tokens]."""
    batch, heads, tokens = 2, 3, 5
    swap = "Swap the last two axes of k, and these alone: k.mT does it; k.T reverses all four."
    for d in (6, 11):  # the second catches a number typed in
        q, k = normal(batch, heads, tokens, d), normal(batch, heads, tokens, d)
        fits, right = q @ k.mT, f"the square root of d, here {d}"
        outcomes = {
            fits / math.sqrt(d): "Each score should be the dot product of a query and a key, "
            f"divided by {right}.",
            fits: f"The scores are not scaled. Divide them by {right}.",
            fits * math.sqrt(d): f"You multiply by {right}. Divide by it.",
            fits.mT / math.sqrt(d): "Queries and keys are exchanged. A row should hold the scores "
            "of one query with all keys: q comes first in the product.",
            (fits / math.sqrt(d)).softmax(-1): "These are weights, after a softmax, which comes "
            "later. Return the scores.",
            fits / math.sqrt(6): "You divide by the square root of 6 for every width. Take d from "
            "the shape of q: it is q.shape[-1].",
        }
        divisors = {
            d: "d itself",
            math.sqrt(tokens): "the square root of the number of tokens",
            math.sqrt(heads * d): "the square root of heads * d, not of each head's own width",
            math.sqrt(2): "the square root of 2, the width of the tokens done with a pencil",
        }
        for divisor, name in divisors.items():
            outcomes[fits / divisor] = f"You divide by {name}. Divide by {right}."
        attempt.expect_close(attempt(q, k, explain={"RuntimeError": swap}), outcomes)


@exercise("batch, tokens, dim", seed=1)
def add_branch(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim] and two functions of such tokens -> as x."""
    x = 2 * normal(2, 3, 5) + 1
    norm, branch, *_ = PARTS
    y = branch(norm(x))
    outcomes = {
        x + y: "The result should be x, with what the branch makes of a normalised copy of x "
        "added.",
        y: "What the branch computes is returned alone. Add it to x, which is lost otherwise.",
        x + branch(x): "The branch reads x itself. Give it norm(x).",
        branch(x): "Neither norm nor addition: the branch reads norm(x), and its result is added "
        "to x.",
        norm(x) + y: "The result is added to the normalised copy. Add it to x.",
        norm(x + branch(x)): "The sum is normalised. Only what the branch reads should be.",
        norm(x + y): "The sum is normalised, too. Only what the branch reads should be.",
        x + norm(branch(x)): "What the branch computes is normalised. The norm comes before it.",
        x + norm(x): "The branch is left out: x + branch(norm(x)).",
        x - y: "What the branch computes is subtracted. Add it.",
    }
    attempt.expect_close(attempt(x, norm, branch), outcomes)


@exercise("batch, dim")
def mean_token(attempt: Attempt) -> None:
    """tokens [batch, tokens, dim] -> [batch, dim]."""
    # With three sides of the same length every axis gives a result of the right shape.
    for seed, shape in ((2, (4, 4, 4)), (3, (2, 3, 5))):
        tokens = normal_draws(seed)(*shape)
        outcomes = {
            tokens.mean(1): "Every number should be the mean over one image's tokens.",
            tokens.sum(1): "These are sums. Divide them by the number of tokens.",
            tokens[:, 0]: "This is the first token alone. Take the mean of all.",
            tokens[:, -1]: "This is the last token alone. Take the mean of all.",
            tokens.amax(1): "These are the largest numbers, not the means.",
            tokens.mean(0): "The mean is over the images. Every image should keep its own: the "
            "tokens are axis 1.",
            tokens.mean(2): "The mean is over the numbers of each token. The tokens are axis 1.",
            tokens.sum(1) / 16: "You divide by 16 for any number of tokens.",
        }
        attempt.expect_close(attempt(tokens), outcomes)
