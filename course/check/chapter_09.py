"""Chapter 9: how many patches a head reads and in which direction, and attribution."""

import math
from functools import partial

import torch

from course.check.attempt import Attempt, Draw, Outcomes
from course.check.exercise import exercise


@exercise(seed=30)
def effective_keys(attempt: Attempt, normal: Draw) -> None:
    """weights [heads, queries, keys] -> [heads]."""
    heads, queries, keys = 3, 4, 6
    message = "A weight of exactly 0 gives NaN or infinity: 0 log 0 counts as 0."
    count = partial(attempt, shape=dict(heads=heads), if_not_finite=message)
    outcomes: Outcomes = {
        keys: f"{keys} keys of equal weight are {keys} effective keys.",
        math.log(keys): "This is the entropy, log n for n equal weights. Its exponential is the "
        "number of keys.",
        math.exp(math.log2(keys)): "The logarithm is to base 2 and the exponential to base e.",
        math.exp(math.log(keys) / keys): "You take the mean over keys. An entropy is a sum.",
        1 / keys: "The entropy has the wrong sign.",
    }
    attempt.expect_close(count(torch.full((heads, queries, keys), 1 / keys)), outcomes)
    single = torch.eye(keys)[:queries].expand(heads, -1, -1).contiguous()
    attempt.expect_close(count(single), {1.0: "All weight on one key is one effective key."})
    weights = normal(heads, queries, keys).mul(2).softmax(-1)
    entropies = -(weights * weights.log()).sum(-1)
    outcomes = {
        entropies.exp().mean(1): "Where queries differ, the number is the mean over queries.",
        entropies.mean(1).exp(): "You take the exponential of the mean entropy. Take the mean of "
        "the exponentials, one for each query.",
        (1 / weights.square().sum(-1)).mean(1): "These are one over the sums of squares, another "
        "measure of the same kind.",
    }
    attempt.expect_close(count(weights), outcomes)


@exercise("heads, axes", seed=31)
def mean_offset(attempt: Attempt, normal: Draw) -> None:
    """weights [heads, patches, patches], rows, columns -> [heads, 2]: down, right, in patches."""
    heads, rows, columns = 3, 2, 5
    patches = rows * columns

    still = torch.eye(patches).expand(heads, -1, -1).contiguous()
    message = "A head in which every patch looks at itself has no offset."
    attempt.expect_close(attempt(still, rows, columns), {torch.zeros(heads, 2): message})
    first = torch.zeros(heads, patches, patches)
    first[:, :, 0] = 1
    outcomes = {
        torch.tensor([-0.5, -2.0]).expand(heads, 2): "All look at the first patch, on a grid of "
        f"{rows} rows and {columns} columns: half a row up and two columns to the left.",
        torch.tensor([0.5, 2.0]).expand(heads, 2): "The signs are reversed, or lost: subtract "
        "where the query is from where the key is.",
        torch.tensor([-2.0, -0.5]).expand(heads, 2): "The axes are exchanged, where down should "
        f"come first, or the grid is read as {columns} rows of {rows}.",
        torch.tensor([-5.0, -20.0]).expand(heads, 2): "This is a sum over queries. Take the mean.",
    }
    attempt.expect_close(attempt(first, rows, columns), outcomes)
    weights = normal(heads, patches, patches).mul(2).softmax(-1)
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    offsets = (places - places[:, None]).double()  # [queries, keys, 2]
    outcomes = {
        torch.einsum("hij,ijd->hd", weights, offsets) / patches: "For weights that differ "
        "everywhere the offset is wrong. Sum over keys by the weights, then take the mean over "
        "queries."
    }
    attempt.expect_close(attempt(weights, rows, columns), outcomes)


@exercise("tokens, others", seed=32)
def relevance(attempt: Attempt, normal: Draw) -> None:
    """weights, gradients [blocks, heads, tokens, tokens] -> [tokens, tokens]."""
    heads, tokens = 3, 5
    eye = torch.eye(tokens)
    weights = normal(2, heads, tokens, tokens).softmax(-1)
    gradients = normal(2, heads, tokens, tokens)
    message = (
        "Where the score does not depend on attention, every token keeps only itself: the identity."
    )
    attempt.expect_close(attempt(weights, torch.zeros_like(gradients)), {eye: message})
    product = weights[0] * gradients[0]
    right = product.clamp(min=0).mean(0)
    outcomes = {
        eye + right: "For one block it should be the identity plus the mean over heads of the "
        "positive parts of weight times gradient.",
        eye + product.mean(0): "Negative parts are not cut off.",
        eye + product.mean(0).clamp(min=0): "The heads are averaged before negative parts are cut "
        "off: a head that speaks against then cancels one that speaks for.",
        eye + product.abs().mean(0): "The sizes are taken: negative parts should go, not turn "
        "positive.",
        eye + heads * right: "The heads are added up. Take their mean.",
        right: "The identity is missing: what a token had, it keeps.",
        eye + gradients[0].clamp(min=0).mean(0): "Weights and gradients are not multiplied: only "
        "the gradient is used.",
    }
    attempt.expect_close(attempt(weights[:1], gradients[:1]), outcomes)
    low, high = (weights * gradients).clamp(min=0).mean(1)
    outcomes = {
        (eye + high) @ (eye + low): "For two blocks the update is R + A R, the first block first.",
        (eye + low) @ (eye + high): "The order is reversed: a later block reads what earlier ones "
        "have mixed, so that it belongs on the left.",
        eye + low + high: "The blocks are added up. Each should act on what came before.",
    }
    attempt.expect_close(attempt(weights, gradients), outcomes)


@exercise("batch, channels, rows, columns", seed=33)
def integrated_gradients(attempt: Attempt, normal: Draw) -> None:
    """images [batch, channels, rows, columns], baseline [channels, rows, columns], score, steps."""
    images, baseline, weights = normal(2, 3, 4, 5), normal(3, 4, 5), normal(3, 4, 5)
    way = images - baseline

    def linear(x: torch.Tensor) -> torch.Tensor:
        return (x * weights).flatten(1).sum(1)

    outcomes = {
        weights * way: "For a linear score each number's part is its weight times its change from "
        "the baseline.",
        weights.expand_as(way): "This is only the gradient. Multiply by image minus baseline.",
        weights * images: "The gradient is multiplied by the image, where it should be by the "
        "image minus the baseline.",
        -weights * way: "The sign is wrong: the path goes from the baseline to the image.",
        weights * way / 2: "Differentiate the sum of the scores, not their mean.",
        3 * weights * way: "The gradients are added up. Take their mean over the steps.",
    }
    attempt.expect_close(attempt(images, baseline, linear, 3), outcomes)
    slope = 2 * weights * way
    outcomes = {
        weights * (images.square() - baseline.square()): "For a score of squares, middles of equal "
        "pieces give the integral exactly.",
        slope * images: "The gradient is taken only at the image. Take it all along the path.",
        slope * baseline: "The gradient is taken only at the baseline. Take it all along the path.",
        slope * images / 2: "The path starts at zero. It should start at the baseline.",
        slope * (baseline + way * 0.625): "The gradient is taken where each piece ends. Take it in "
        "the middle.",
        slope * (baseline + way * 0.375): "The gradient is taken where each piece begins. Take it "
        "in the middle.",
    }
    attempt.expect_close(attempt(images, baseline, lambda x: linear(x.square()), 4), outcomes)
    slopes = [3 * (3 * linear(baseline + (step + 0.5) / 5 * way)).cos() for step in range(5)]
    mean = torch.stack(slopes).mean(0).view(-1, 1, 1, 1)
    outcomes = {
        mean * weights * way: "For a score that bends, the mean over 5 steps is wrong. Each image "
        "of the batch has its own path."
    }
    attempt.expect_close(attempt(images, baseline, lambda x: (3 * linear(x)).sin(), 5), outcomes)


@exercise("new tokens, tokens", seed=34)
def merge_matrix(attempt: Attempt, normal: Draw) -> None:
    """keys [tokens, d], sizes [tokens], merges -> [tokens - merges, tokens]."""
    keys, sizes = normal(7, 3), torch.tensor([1.0, 2, 5, 1, 4, 3, 2])
    keys[4] = 3 * keys[1] + 0.1 * keys[4]  # the larger product, but not the larger cosine
    keys[2] = keys[1] + 0.02 * keys[2]  # two choose one

    def matrix(keys=keys, sizes=sizes, merges=2, angles=True, sign=1, mean=True, first=0):
        k = keys / keys.norm(dim=1, keepdim=True) if angles else keys
        best = {}
        for i in range(first, len(k), 2):
            products = {j: float(k[i] @ k[j]) for j in range(1 - first, len(k), 2)}
            best[i] = max((value, j) for j, value in products.items())
        gone = sorted(best, key=lambda i: -sign * best[i][0])[:merges]
        rows = torch.diag(sizes)
        for i in gone:
            rows[best[i][1], i] = sizes[i]
        rows = rows[[i not in gone for i in range(len(k))]]
        return rows / rows.sum(1, keepdim=True) if mean else rows

    outcomes: Outcomes = {
        matrix(): "For seven tokens of which two are merged the matrix is wrong.",
        matrix(sizes=torch.ones(7)): "All tokens count alike. A token of five patches has five "
        "times the weight of one.",
        matrix(mean=False): "The rows do not sum to 1: divide by the sum of the sizes.",
        matrix(sizes=torch.ones(7), mean=False): "This adds tokens up. Take means, by sizes.",
        matrix(angles=False): "These are products of keys. Take cosines: a long key is not more "
        "alike.",
        matrix(sign=-1): "The tokens that are least alike are merged.",
        matrix(first=1): "The odd tokens are merged into even ones. It is the other way round.",
    }
    attempt.expect_close(attempt(keys, sizes, 2), outcomes)
    keys, sizes = normal(12, 4), 1 + normal(12).abs()
    message = "For twelve tokens of which five are merged the matrix is wrong."
    attempt.expect_close(attempt(keys, sizes, 5), {matrix(keys, sizes, 5): message})
    message = "With nothing to merge all tokens stay."
    attempt.expect_close(attempt(keys, sizes, 0), {torch.eye(12): message})
