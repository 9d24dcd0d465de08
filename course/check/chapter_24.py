"""Chapter 24: shares of attention, registers, outliers, weights that need not sum to 1."""

import math

import torch

from course.check.attempt import Attempt, Draw
from course.check.exercise import exercise


@exercise("batch, queries", seed=1)
def share_to(attempt: Attempt, normal: Draw) -> None:
    """weights [batch, queries, keys], chosen [batch, keys] -> [batch, queries]."""
    weights = normal(2, 3, 5).abs()
    chosen = torch.tensor([[True, False, True, False, False], [False, True, True, True, False]])
    part, whole = (weights * chosen[:, None]).sum(-1), weights.sum(-1)
    outcomes = {
        part / whole: "For three queries and five keys the share of those chosen is wrong.",
        part: "These are weights. Divide by the sum of the query's weights, which with sigmoids is "
        "not 1.",
        1 - part / whole: "This is the share of the tokens that are not chosen.",
        part / chosen.sum(1, True): "You average over the chosen keys. Add their weights up.",
        (weights * chosen[:1, None]).sum(-1) / whole: "Each image has chosen keys of its own.",
    }
    attempt.expect_close(attempt(weights, chosen), outcomes)


@exercise("batch, tokens, dim", seed=2)
def with_registers(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], registers [r, dim], blocks -> as x."""
    x, registers = normal(4, 5, 6), normal(2, 6)
    blocks = [
        lambda x: x + x.cumsum(1).flip(1),
        lambda x: x * x.mean(1, keepdim=True),
        lambda x: x - x[:, :1],
    ]

    def run(x, kept=slice(2, None), blocks=blocks, registers=registers, front=True):
        r = registers.expand(len(x), -1, -1)
        x = torch.cat([r, x] if front else [x, r], 1)
        for block in blocks:
            x = block(x)
        return x[:, kept]

    outcomes = {
        run(x): "For five tokens, two registers and three blocks what comes out is wrong.",
        run(x, slice(None)): "The registers are still there: drop them at the end.",
        run(x, slice(None, -2)): "You drop the last tokens. The registers are the first.",
        run(x, slice(1, None)): "You drop one token, but there are two registers.",
        run(x, slice(None, -2), front=False): "Put the registers before the tokens.",
        run(run(x, blocks=blocks[:1]), blocks=blocks[1:]): "The registers are new in every block. "
        "They should pass through all blocks.",
        run(blocks[0](x), blocks=blocks[1:]): "The registers join after the first block.",
        run(x, blocks=blocks[:1]): "Only the first block is used.",
        run(x, slice(None), registers=registers[:0]): "The blocks see no registers.",
    }
    attempt.expect_close(attempt(x, registers, blocks), outcomes)
    message = "With no registers, [0, dim], the blocks should do what they do without."
    none = registers[:0]
    attempt.expect_close(attempt(x, none, blocks), {run(x, slice(None), registers=none): message})


@exercise(seed=5)
def outlier_share(attempt: Attempt, normal: Draw) -> None:
    """tokens [batch, n, dim] -> one number."""
    tokens = normal(2, 9, 5)
    lengths = torch.tensor([0.4, 1, 1, 1, 1, 2.5, 3.4, 7, 30])[:, None]
    tokens *= lengths / tokens.norm(dim=-1, keepdim=True)
    tokens *= torch.tensor([0.3, 0.39])[:, None, None]
    norms = tokens.norm(dim=-1)
    over = [norms / norms.median(), norms / norms.mean()]
    over += [norms / norms.median(1, keepdim=True).values, over[0].square()]
    first, mean, own, squared = ((ratio > 3).double().mean() for ratio in over)
    outcomes = {
        first: "For two images of nine tokens the fraction is wrong.",
        mean: "You compare with the mean, which the outliers raise. Take the median.",
        own: "You take a median for each image. Take one of all tokens.",
        squared: "You compare squared norms.",
        first * 18: "This is how many there are. Divide by the number of tokens.",
        1 - first: "This is the fraction of the others.",
    }
    attempt.expect_close(attempt(tokens), outcomes)
    message = "Where all norms are equal, none stands out."
    attempt.expect_close(attempt(torch.eye(4)[None]), {torch.tensor(0.0): message})


@exercise("batch, queries, keys", seed=4)
def softmax_plus_one(attempt: Attempt, normal: Draw) -> None:
    """scores [batch, queries, keys] -> as scores."""
    scores = normal(2, 3, 4)
    e, shifted = scores.exp(), (scores - scores.amax(-1, keepdim=True)).exp()
    outcomes = {
        e / (1 + e.sum(-1, keepdim=True)): "For four keys the weights are wrong.",
        scores.softmax(-1): "This is softmax: 1 is missing from the denominator.",
        shifted / (1 + shifted.sum(-1, keepdim=True)): "You subtract the largest score from the "
        "others, but not from the score of 0 that the 1 stands for.",
        scores.softmax(-1) / 2: "The 1 belongs into the denominator of softmax, not after it.",
        e / (1 + e): "Each weight has a denominator of its own. Add over the keys.",
        e / (4 + e.sum(-1, keepdim=True)): "You add 1 for each key. Add it once.",
        e / (1 + e.sum(-2, keepdim=True)): "The sum goes over keys, the last axis.",
    }
    attempt.expect_close(attempt(scores), outcomes)
    message = "Scores of 1,000 give no finite weights: subtract the largest score first."
    large = torch.tensor([[[1000.0, 1000.0], [-1000.0, -1000.0]]])
    attempt.expect_close(attempt(large), {torch.tensor([[[0.5, 0.5], [0.0, 0.0]]]): message})


@exercise("batch, queries, keys", seed=5)
def sigmoid_weights(attempt: Attempt, normal: Draw) -> None:
    """scores [batch, queries, keys] -> as scores."""
    scores = normal(2, 3, 7)

    def shifted(by: float) -> torch.Tensor:
        return 1 / (1 + torch.exp(-scores - by))

    outcomes = {
        shifted(-math.log(7)): "For seven keys the weights are wrong.",
        shifted(0): "The bias of minus log n is missing.",
        shifted(math.log(7)): "The bias has the wrong sign: it should make weights small.",
        shifted(-math.log10(7)): "The logarithm is the natural one.",
        shifted(-math.log(3)): "n is the number of keys, the last axis.",
        shifted(0) / 7: "You divide by n. Subtract log n from the scores.",
        (scores - math.log(7)).softmax(-1): "This is softmax, which no constant changes.",
    }
    attempt.expect_close(attempt(scores), outcomes)


@exercise("queries, keys")
def streaming_mask(attempt: Attempt) -> None:
    """n, sinks, window -> [n, n], true where a query may attend."""
    key = torch.arange(7)
    query = key[:, None]

    def mask(sinks=2, window=3, causal=True):
        kept = (key < sinks) | (key > query - window)
        return (kept & (key <= query) if causal else kept).double()

    outcomes = {
        mask(): "For seven tokens, two sinks and a window of three the mask is wrong.",
        mask(sinks=0): "The sinks are evicted: keep the first tokens.",
        mask(window=7): "Nothing is evicted.",
        mask(window=2): "The window includes the token itself and is one too short.",
        mask(window=4): "The window includes the token itself and is one too long.",
        mask(causal=False): "No token may see a later one.",
        mask().T: "Rows are queries: the mask is transposed.",
        1 - mask(): "The mask should be true where a query may attend.",
    }
    attempt.expect_close(attempt(7, 2, 3, dtype=torch.bool).double(), outcomes)
