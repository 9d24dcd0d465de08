"""Small models that read a sequence of pairs and are asked for one, by attention or by recurrence.

A pair is a key, a random direction, and a value, one of eight. The last token repeats the key of
one pair, whose value is the answer. Where a pair is marked, its key is always the same.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from minivit.vit import MLP
from studies.runner.survey import Figures
from studies.shared.training import accuracy, optimise

KEY, VALUES = 32, 8
DIM = 64
SHORTEST, LONGEST = 4, 16  # pairs in training
COUNT = 2000  # sequences to test on
Kind = Literal["attention", "attention with positions", "recurrent"]


def pairs(
    count: int, length: int, generator: Generator, marked: bool = False
) -> tuple[Tensor, Tensor]:
    """Sequences ``[count, length + 1, KEY + VALUES]`` and answers ``[count]``."""
    keys = F.normalize(torch.randn(count, length, KEY, generator=generator), dim=-1)
    values = torch.randint(VALUES, (count, length), generator=generator)
    question = torch.randint(length, (count,), generator=generator)
    rows = torch.arange(count)
    if marked:
        keys[rows, question] = torch.eye(KEY)[0]
    tokens = torch.cat([keys, F.one_hot(values, VALUES)], -1)
    last = F.pad(keys[rows, question], (0, VALUES))
    return torch.cat([tokens, last[:, None]], 1), values[rows, question]


class Attending(nn.Module):
    """A pre-norm block of one head; of its output only the last token's is computed."""

    def __init__(self, positions: bool) -> None:
        super().__init__()
        self.positions = positions
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.query, self.key, self.value, self.out = (nn.Linear(DIM, DIM) for _ in range(4))
        self.mlp = MLP(DIM, DIM)

    def weights(self, x: Tensor, sharper: float = 1.0) -> Tensor:
        """What the last token takes from each, ``[batch, tokens]``."""
        read = self.norm1(self.placed(x))
        q, k = self.query(read[:, -1:]), self.key(read)
        return (sharper * q @ k.mT / math.sqrt(DIM)).softmax(-1)[:, 0]

    def placed(self, x: Tensor) -> Tensor:
        """With fixed positions (Vaswani et al. 2017), which any length has."""
        if not self.positions:
            return x
        waves = torch.exp(-math.log(10_000) * torch.arange(0, DIM, 2) / DIM)
        angles = torch.arange(x.shape[1])[:, None] * waves
        return x + torch.cat([angles.sin(), angles.cos()], 1)

    def forward(self, x: Tensor, sharper: float = 1.0) -> Tensor:
        mixed = self.weights(x, sharper)[:, None] @ self.value(self.norm1(self.placed(x)))
        last = self.placed(x)[:, -1] + self.out(mixed[:, 0])
        return last + self.mlp(self.norm2(last))


class Reader(nn.Module):
    """From a sequence of pairs and a question to logits of the values."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.embed = nn.Linear(KEY + VALUES, DIM)
        self.mixing: nn.Module
        if kind == "recurrent":  # Cho et al. 2014
            self.mixing = nn.GRU(DIM, DIM, batch_first=True)
        else:
            self.mixing = Attending(kind.endswith("positions"))
        self.head = nn.Linear(DIM, VALUES)

    def forward(self, tokens: Tensor, **how: float) -> Tensor:
        mixed = self.mixing(self.embed(tokens), **how)
        return self.head(mixed[1][0] if isinstance(self.mixing, nn.GRU) else mixed)


def taught(kind: Kind, rate: float, seed: int, steps: int, marked: bool = False) -> Reader:
    """A reader trained on as many lengths as there are steps, each drawn at random."""
    torch.manual_seed(seed)
    model, generator = Reader(kind), Generator().manual_seed(seed + 1000)

    def loss() -> Tensor:
        length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        tokens, answers = pairs(64, length, generator, marked)
        return F.cross_entropy(model(tokens), answers)

    optimise(model, loss, steps, rate, weight_decay=0.01)
    return model


def right(model: Reader, length: int, seed: int, marked: bool = False, **how: float) -> float:
    """The fraction of new sequences of this length that a reader answers right."""
    tokens, answers = pairs(COUNT, length, Generator().manual_seed(seed), marked)
    return accuracy(partial(model, **how), tokens, answers)


@torch.no_grad()
def by_length(model: Reader, lengths: Sequence[int]) -> Figures:
    """What one reader of pairs does, over all lengths."""
    figures: Figures = {"accuracy": [right(model, n, 10_000 + n) for n in lengths]}
    if isinstance(model.mixing, Attending):
        figures["weight"] = [on_the_pair(model, n) for n in lengths]
        # Scores times log n over log 16: what spreads over n tokens is taken back.
        logs = torch.tensor(lengths).log() / torch.tensor(LONGEST).log()
        figures["sharpened"] = [
            right(model, n, 10_000 + n, sharper=max(1.0, by))
            for n, by in zip(lengths, logs.tolist(), strict=True)
        ]
    return figures


def on_the_pair(model: Any, length: int) -> float:
    """Mean weight of the question on the pair that it asks for."""
    tokens, _ = pairs(250, length, Generator().manual_seed(length))
    weights = model.mixing.weights(model.embed(tokens))
    keys = tokens[..., :KEY]
    pair = (keys[:, :-1] @ keys[:, -1:].mT)[..., 0].argmax(1)
    return weights[torch.arange(len(pair)), pair].mean().item()
