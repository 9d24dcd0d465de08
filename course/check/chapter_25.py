"""Chapter 25: places as rotations, a norm without a mean, bounded scores, a gate, side by side."""

import torch

from course.check.attempt import Attempt, Draw
from course.check.chapter_03 import turned
from course.check.chapter_04 import PARTS
from course.check.exercise import exercise


@exercise("batch, heads, tokens, features", seed=0)
def rope_2d(attempt: Attempt, normal: Draw) -> None:
    """x [batch, heads, tokens, 4 n], rows and columns [tokens], rates [n] -> as x."""
    rates = torch.tensor([1.0, 0.3])
    rows, columns = torch.tensor([0.0, 1.0, 1.0, 4.0, 2.0]), torch.tensor([0.0, 2.0, 3.0, 1.0, 5.0])
    x = normal(2, 3, 5, 8)
    by_row, by_column = torch.outer(rows, rates), torch.outer(columns, rates)
    angles = torch.cat([by_row, by_column], 1)
    mixed = torch.stack([by_row[:, 0], by_column[:, 0], by_row[:, 1], by_column[:, 1]], 1)
    first = torch.cat([turned(x[..., :4], by_row), x[..., 4:]], -1)
    second = "The features of the second half are turned by columns."
    outcomes = {
        turned(x, angles): "For five patches and two rates the turned features are wrong.",
        turned(x, -angles): "You turn the other way: it is a cos - b sin and a sin + b cos.",
        turned(x, torch.cat([by_column, by_row], 1)): "Rows turn the first half of the pairs.",
        turned(x, angles, halves=True): "A pair is two features side by side: 2j and 2j + 1.",
        turned(x, mixed): "Rows and columns take turns. All pairs by rows come first.",
        turned(x, torch.cat([by_row, by_row], 1)): second,
        first: second,
        turned(x, torch.outer(rows + columns, torch.cat([rates, rates]))): "Rows and columns are "
        "added: then places on a diagonal look alike.",
    }
    attempt.expect_close(attempt(x, rows, columns, rates), outcomes)
    still = attempt(x[:, :, :1], rows[:1], columns[:1], rates)
    attempt.expect_close(still, {x[:, :, :1]: "At row 0 and column 0 nothing should turn."})


@exercise("batch, tokens, features", seed=1)
def rms_norm(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, d], scale [d], eps -> as x."""
    x, scale = normal(2, 3, 5) + 1, normal(5)

    def square(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
        return (x * x).sum(axis, keepdim=True) / x.shape[axis]

    centred = x - x.sum(-1, keepdim=True) / 5
    outcomes = {
        x / torch.sqrt(square(x) + 0.1) * scale: "For six tokens of five features it is wrong.",
        x / (torch.sqrt(square(x)) + 0.1) * scale: "eps stands inside the root.",
        x / torch.sqrt(square(x)) * scale: "eps is missing.",
        x / torch.sqrt(square(x) + 0.1): "The scale is missing.",
        x / torch.sqrt(5 * square(x) + 0.1) * scale: "You divide by the length, not by the root of "
        "the mean square.",
        x / (square(x) + 0.1) * scale: "The root is missing.",
        centred / torch.sqrt(square(centred) + 0.1) * scale: "You take out the mean.",
        x / torch.sqrt(square(centred) + 0.1) * scale: "You divide by the standard deviation, "
        "which takes out the mean. Take the mean square.",
        x / torch.sqrt(square(x, 1) + 0.1) * scale: "Each token has a mean square of its own.",
    }
    attempt.expect_close(attempt(x, scale, 0.1), outcomes)


@exercise("heads, queries, keys", seed=3)
def normed_attention(attempt: Attempt, normal: Draw) -> None:
    """q, k [heads, tokens, d], scales [d] -> weights [heads, tokens, tokens]."""
    q, k = 3 * normal(2, 4, 3), 3 * normal(2, 5, 3)
    scales = normal(3), normal(3)

    def weights(norms=("rms", "rms"), scales=scales, root=3**0.5, axis=-1):
        both = []
        for x, scale, norm in zip((q, k), scales, norms, strict=True):
            x = x - x.mean(-1, keepdim=True) if norm == "layer" else x
            size = x.square().sum(axis, keepdim=True) / (1 if norm == "length" else x.shape[axis])
            both.append((x if norm == "none" else x / torch.sqrt(size + 1e-6)) * scale)
        return (both[0] @ both[1].mT / root).softmax(-1)

    outcomes = {
        weights(): "For four queries and five keys the weights are wrong.",
        weights(norms=("none", "none")): "Neither queries nor keys are normed.",
        weights(norms=("rms", "none")): "The keys are not normed.",
        weights(norms=("none", "rms")): "The queries are not normed.",
        weights(norms=("length", "length")): "You divide by the length. Take the mean square.",
        weights(norms=("layer", "layer")): "You take out the mean. RMSNorm does not.",
        weights(scales=(torch.ones(3), torch.ones(3))): "The scales are missing.",
        weights(root=1): "The scores are not divided by the root of d.",
        weights(axis=-2): "Each query and key is normed alone: over its features.",
    }
    attempt.expect_close(attempt(q, k, *scales), outcomes)


@exercise("tokens, features", seed=4)
def swiglu(attempt: Attempt, normal: Draw) -> None:
    """x [tokens, dim], gate and value [hidden, dim], out [dim, hidden] -> as x."""
    x, gate, value, out = normal(2, 3), normal(4, 3), normal(4, 3), normal(3, 4)
    g, v = x @ gate.T, x @ value.T
    sigmoid = 1 / (1 + torch.exp(-g))
    outcomes = {
        (g * sigmoid * v) @ out.T: "For two tokens the result is wrong.",
        (v / (1 + torch.exp(-v)) * g) @ out.T: "Gate and value are exchanged.",
        (sigmoid * v) @ out.T: "This gate is a sigmoid. The SiLU is g times the sigmoid of g.",
        (g * v) @ out.T: "The SiLU of the gate is missing.",
        (g * sigmoid) @ out.T: "The values are missing.",
        (g * sigmoid + v) @ out.T: "Gate and value are multiplied, not added.",
        (torch.relu(g) * v) @ out.T: "This gate is a ReLU. Take the SiLU.",
    }
    attempt.expect_close(attempt(x, gate, value, out), outcomes)


@exercise("tokens, features", seed=5)
def parallel_step(attempt: Attempt, normal: Draw) -> None:
    """x [tokens, d], functions norm, attention and mlp, scale [d] -> as x."""
    x, scale = normal(3, 4), normal(4)
    norm, attention, _, mlp = PARTS
    y = norm(x)
    both = attention(y) + mlp(y)
    after = x + scale * attention(y)
    outcomes = {
        x + scale * both: "For three tokens the result is wrong.",
        x + both: "The scale is missing.",
        scale * both: "What the branches give is added to x.",
        scale * (x + both): "The scale multiplies what the branches add, not x.",
        x + scale * attention(y) + mlp(y): "The scale belongs to both branches.",
        after + scale * mlp(norm(after)): "The MLP comes after attention. Let both read x.",
        x + scale * mlp(attention(y)): "The MLP reads what attention gives. Let both read x.",
        x + scale * (attention(x) + mlp(x)): "The norm is missing.",
        x + scale * (attention(y) + mlp(x)): "The MLP reads x without the norm.",
    }
    attempt.expect_close(attempt(x, norm, attention, mlp, scale), outcomes)


@exercise("features", seed=6)
def key_for(attempt: Attempt, normal: Draw) -> None:
    """query [4 n], rows, columns, rates [n] -> a key, as the query."""
    query, rates = normal(8), torch.tensor([1.0, 0.3])
    rows, columns = torch.tensor(2.0), torch.tensor(-3.0)
    angles = torch.cat([rows * rates, columns * rates])
    outcomes = {
        turned(query, -angles): "For 2 rows down and 3 columns to the left the key is wrong.",
        turned(query, angles): "The key is turned by its place later on: turn it back.",
        query: "This key scores highest at the query's own place.",
        turned(query, -angles.roll(2)): "Rows and columns are exchanged.",
        -turned(query, -angles): "This key scores lowest there: the sign is wrong.",
    }
    attempt.expect_close(attempt(query, rows, columns, rates), outcomes)
