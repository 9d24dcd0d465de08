"""Chapter 21: means and other images' tokens put in, read-outs, sparse codes."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course.check.attempt import Attempt, Draw, normal_draws
from course.check.chapter_04 import normed
from course.check.exercise import exercise


class Small(nn.Module):
    """From ``[batch, tokens, dim]`` to logits, with two branches that each token has by itself."""

    def __init__(self, dim: int, classes: int) -> None:
        super().__init__()
        draw = normal_draws(seed=31)
        self.first, self.second = (Map(draw(dim, dim)) for _ in range(2))
        self.head = Map(draw(dim, classes))

    def forward(self, x: Tensor, name: str = "", given: Any = None) -> Tensor:
        """The logits; the branch of this name gives what is given."""
        for branch in ("first", "second"):
            x = x + (given if branch == name else getattr(self, branch)(x))
        return self.head(x).prod(1)  # so that every token matters, and none adds by itself


class Map(nn.Module):
    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.weight)


def branch_of(model: Small, x: Tensor, name: str) -> Tensor:
    return model.first(x) if name == "first" else model.second(x + model.first(x))


@exercise("n, classes", seed=0)
def with_mean(attempt: Attempt, normal: Draw) -> None:
    """x [n, tokens, dim], known [m, tokens, dim], model, name -> [n, classes]."""
    model = Small(dim=4, classes=5)
    x, known = normal(3, 2, 4), normal(6, 2, 4)
    for name in ("first", "second"):
        there, here = (branch_of(model, t, name) for t in (known, x))
        put_in = partial(model, x, name)
        outcomes = {
            put_in(there.mean(0)): f"With the mean in the place of {name!r} the logits are wrong.",
            model(x): "The model is whole: nothing is put in.",
            put_in(torch.zeros_like(here)): "Zeros are put in. Put in the mean over known images.",
            put_in(here.mean(0)): "This is the mean over x, the images that are scored. Take that "
            "over known.",
            put_in(there.mean((0, 1))): "All tokens share one mean. Each has its own, over images.",
            put_in(here.mean(1, keepdim=True).expand_as(here)): "The mean over the tokens is put "
            "in. Take that over the images.",
            put_in(branch_of(model, known.mean(0, True), name)[0]): "Average outputs, not images.",
            put_in(there.sum(0)): "What is put in is a sum over images. Divide by their number.",
        }
        attempt.expect_close(attempt(x, known, model, name), outcomes)


@exercise("n, classes", seed=1)
def patched(attempt: Attempt, normal: Draw) -> None:
    """x, other [n, tokens, dim], model, name, tokens -> [n, classes]."""
    model = Small(dim=4, classes=5)
    x, other = normal(3, 5, 4), normal(3, 5, 4)
    for name in ("first", "second"):
        here, there = (branch_of(model, t, name) for t in (x, other))

        def put_in(into, kept, new, tokens, name=name) -> Tensor:
            given = kept.clone()
            given[:, tokens] = new[:, tokens]
            return model(into, name, given)

        for tokens in ([1, 3, 4], [0]):
            rest = [i for i in range(5) if i not in tokens]
            outcomes = {
                put_in(x, here, there, tokens): f"With the tokens {tokens} of {name!r} put in the "
                "logits are wrong.",
                put_in(x, here, there, []): "The model is whole: nothing is put in.",
                put_in(x, here, there, list(range(5))): "All are put in. Put in those of the list.",
                put_in(x, here, there, rest): "The tokens of the list stay, and others are put in.",
                put_in(other, there, here, tokens): "The run is that of the other images: put "
                "their tokens into the run of x.",
                put_in(x, here, torch.zeros_like(here), tokens): "Zeros are put in. Put in the "
                "tokens of the other images.",
                put_in(x, here, here + there, tokens): "Tokens are added. Replace them.",
                model(other): "These are the logits of the other images.",
            }
            attempt.expect_close(attempt(x, other, model, name, tokens), outcomes)


@exercise("batch, classes", seed=2)
def read_out(attempt: Attempt, normal: Draw) -> None:
    """tokens [batch, tokens, dim], norm, head -> [batch, classes]."""
    tokens = normal(3, 4, 6) * torch.tensor([1.0, 3.0, 0.5, 2.0])[:, None]
    scale, shift, weight, bias = normal(6), normal(6), normal(6, 5), normal(5)

    def norm(x: Tensor) -> Tensor:
        return normed(x, eps=1e-5) * scale + shift

    def head(x: Tensor) -> Tensor:
        return x @ weight + bias

    outcomes = {
        head(norm(tokens).sum(1) / 4): "For three images of four tokens the logits are wrong.",
        head(norm(tokens.mean(1))): "The mean is taken before the norm. That acts on every token.",
        head(tokens.mean(1)): "The norm is left out.",
        head(norm(tokens).sum(1)): "The tokens are added up. Take their mean.",
        head(norm(tokens)[:, 0]): "Only the first token is read. Take the mean of all.",
        head(norm(norm(tokens).mean(1))): "The norm acts a second time, on the mean.",
    }
    attempt.expect_close(attempt(tokens, norm, head), outcomes)


@exercise("tokens, size", seed=4)
def sparse_codes(attempt: Attempt, normal: Draw) -> None:
    """x [tokens, dim], encoder [size, dim], bias [size], k -> [tokens, size]."""
    x, encoder, bias = normal(6, 4), normal(9, 4), normal(9)
    scores = x @ encoder.T + bias

    def keep(scores: Tensor, k: int, by: Tensor) -> Tensor:
        largest = by.sort(descending=True).indices[:, :k]
        return torch.zeros_like(scores).scatter(1, largest, scores.gather(1, largest))

    positive = scores.relu()
    for k in (2, 3):
        largest = positive.flatten().sort(descending=True).values[6 * k - 1]
        outcomes = {
            keep(positive, k, positive): f"With the {k} largest of nine codes the result is wrong.",
            positive: "All positive codes are kept. Keep the k largest of each token.",
            keep((scores - bias).relu(), k, scores - bias): "The bias is left out.",
            keep(positive.T, k, positive.T).T: "Each direction keeps k tokens, not each token k.",
            keep(positive, k, -positive): "The k smallest codes are kept.",
            keep(scores, k, scores.abs()): "Codes are kept by their size, whatever the sign.",
            torch.where(positive >= largest, positive, 0): "The largest codes of all tokens "
            "together are kept. Each token has its own k.",
            (keep(positive, k, positive) > 0).to(x): "What is kept should be the code, not a 1.",
        }
        attempt.expect_close(attempt(x, encoder, bias, k), outcomes)
    outcomes = {
        keep(positive, 8, positive): "With a large k the result is wrong.",
        keep(scores, 8, scores): "A code below zero is kept. A direction is in a token or it is "
        "not: codes are never negative.",
    }
    attempt.expect_close(attempt(x, encoder, bias, 8), outcomes)
