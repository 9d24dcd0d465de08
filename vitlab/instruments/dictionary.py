"""A sparse autoencoder: tokens as sums of a few directions out of many."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitlab.instruments.running import expect

BATCH = 256  # tokens in each step
RATE = 2e-3  # the step size, which falls to zero in the last fifth of the training
STALE = 10  # times in a training that directions which no token uses are given a new start


@dataclass(frozen=True)
class Fit:
    """How well, and how sparsely, a dictionary describes tokens."""

    explained: float  # fraction of their variance
    active: float  # directions that a token uses, in the mean
    dead: int  # directions that no token uses


class Dictionary(nn.Module):
    """Directions, and an encoder that says how much of each is in a token."""

    scale: Tensor  # of the tokens, so that steps fit them

    def __init__(self, dim: int, size: int, k: int):
        super().__init__()
        self.k = k  # how many directions a token may use
        self.offset = nn.Parameter(torch.zeros(dim))
        self.encoder = nn.Parameter(torch.empty(size, dim))
        self.bias = nn.Parameter(torch.zeros(size))
        self.directions = nn.Parameter(torch.empty(size, dim))  # of length 1
        self.register_buffer("scale", torch.ones(()))

    def codes(self, tokens: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch size"]:
        """How much of each direction is in each token: never negative, mostly zero."""
        codes = ((tokens / self.scale - self.offset) @ self.encoder.T + self.bias).relu()
        top, where = codes.topk(self.k, -1)
        return torch.zeros_like(codes).scatter(-1, where, top) * self.scale

    def decoded(self, codes: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch dim"]:
        """The tokens that codes stand for."""
        return codes @ self.directions + self.offset * self.scale

    def forward(self, tokens: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        return self.decoded(self.codes(tokens))

    @torch.no_grad()
    def fit(self, tokens: Float[Tensor, "*batch dim"]) -> Fit:
        """Measures how well it describes tokens, usually not those it was learnt from."""
        x = tokens.flatten(0, -2)
        codes = self.codes(x)
        left = (x - self.decoded(codes)).double().square().sum()
        variance = (x - x.mean(0)).double().square().sum()
        used = codes > 0
        active = used.double().sum(-1).mean()
        return Fit((1 - left / variance).item(), active.item(), int((~used.any(0)).sum()))


@torch.inference_mode(False)  # in which nothing has a gradient
def learn_dictionary(
    tokens: Float[Tensor, "*batch dim"], size: int, *, k: int, steps: int = 2000, seed: int = 0
) -> Dictionary:
    """Learns directions of which tokens are sparse sums, by Adam on the squared error.

    A sparse autoencoder as in Gao et al. (2025): of ``size`` directions of length 1, several times
    as many as dimensions, a token uses the ``k`` with the largest codes. Now and then, those that
    no token has used begin anew, at the tokens described worst.
    """
    rows = tokens.detach().clone().float().flatten(0, -2)
    variance = (rows - rows.mean(0)).square().sum(1).mean()
    expect(0 < variance < torch.inf, "finite tokens that differ", list(tokens.shape))
    g = torch.Generator().manual_seed(seed)
    dictionary = Dictionary(rows.shape[1], size, k).to(rows.device)
    dictionary.scale.copy_(variance.sqrt())
    dictionary.offset.data.copy_(rows.mean(0) / dictionary.scale)
    start = torch.randn(size, rows.shape[1], generator=g).to(rows)
    with torch.no_grad():
        _begin(dictionary, torch.arange(size), start)
    optimiser = torch.optim.Adam(dictionary.parameters(), RATE)
    used = torch.zeros(size, dtype=torch.bool, device=rows.device)
    for step in range(steps):
        x = rows[torch.randint(len(rows), (BATCH,), generator=g)]
        with torch.enable_grad():
            codes = dictionary.codes(x)
            left = x - dictionary.decoded(codes)
            loss = left.square().sum(1).mean() / variance
        optimiser.param_groups[0]["lr"] = RATE * min(1, 5 * (1 - step / steps))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        used |= (codes > 0).any(0)
        with torch.no_grad():
            dictionary.directions.div_(dictionary.directions.norm(dim=1, keepdim=True))
            if (step + 1) % max(steps // STALE, 1) == 0 and step + 1 < 0.8 * steps:
                idle = (~used).nonzero().flatten()[: len(x)]
                worst = left.square().sum(1).argsort(descending=True)[: len(idle)]
                _begin(dictionary, idle, left[worst])
                used.zero_()
    return dictionary.requires_grad_(False)


def _begin(dictionary: Dictionary, which: Tensor, at: Float[Tensor, "some dim"]) -> None:
    """Points these directions, and the encoder's, along some vectors."""
    directions = nn.functional.normalize(at, dim=1)
    dictionary.directions[which] = directions
    dictionary.encoder[which] = directions
    dictionary.bias[which] = 0
