"""Which tokens a part of a model mixes, judged by which derivatives are zero."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.hooks import before
from minivit.recording import one, record, tensors_in
from vitlab.calls import sublayer
from vitlab.claims.probe import CannotAsk, Measured, Subject, probe
from vitlab.claims.probes.parts import attends, attention_of, both_kinds, read_by
from vitlab.instruments.blocks import row_of_blocks
from vitlab.instruments.running import evaluating
from vitlab.krylov import plain_attention

OnTokens = Callable[[Float[Tensor, "1 tokens dim"]], Float[Tensor, "1 tokens dim"]]
CHANNELS = 64  # of an output token, at most, with a backward pass for each
ROWS = 64  # output tokens, at most


def exact(subject: Subject) -> tuple[nn.Module, Tensor]:
    """The model in float64, where no weight of attention is rounded to zero, and an image."""
    return copy.deepcopy(subject.model).double().eval(), subject.images[:1].double()


def on_tokens(model: nn.Module, name: str, image: Tensor) -> tuple[OnTokens, Tensor]:
    """A part of a model as a function of tokens, and those that it reads."""
    function, x = sublayer(model, name, image)
    if x.ndim != 3 or len(x) != 1 or function(x).shape != x.shape:
        raise CannotAsk(f"{name!r} reads {list(x.shape)}, not tokens [1, tokens, dim] of an image")
    return function, x


def influence(function: OnTokens, x: Tensor, token: int) -> Float64[Tensor, "tokens"]:
    """Size of the derivatives of an output token by every token: the root of their mean square
    over channels of the output, times that of the number of channels."""
    x = x.detach().requires_grad_()
    with torch.enable_grad(), plain_attention():
        y = function(x)[0, token]  # [dim]
    drawn = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))[:CHANNELS]
    slopes = (torch.autograd.grad(y[c], x, retain_graph=True)[0][0] for c in drawn.tolist())
    squares = sum((slope.double().square().sum(-1) for slope in slopes), torch.zeros(()))
    return (squares * len(y) / len(drawn)).sqrt().cpu()


@probe("H12", "On what fraction of the tokens does an output of this model's attention depend?")
def reach_of_attention(subject: Subject) -> Measured:
    """For the token in the middle; the least of all attention layers."""
    model, image = exact(subject)
    shares = []
    for name in attention_of(model, image):
        function, x = on_tokens(model, name, image)
        shares.append((influence(function, x, x.shape[1] // 2) > 0).double().mean().item())
    return Measured(min(shares), curves={"fraction of the tokens": torch.tensor(shares)})


@probe("R12", "How much does a token after an MLP of this model depend on other tokens?")
def mlp_across_tokens(subject: Subject) -> Measured:
    """Largest derivative of the token in the middle by another one, of all MLPs."""
    model, image = exact(subject)
    _, mlps = both_kinds(model, image)
    largest = []
    for name in mlps:
        function, x = on_tokens(model, name, image)
        found = influence(function, x, x.shape[1] // 2)
        found[x.shape[1] // 2] = 0
        largest.append(found.max().item())
    return Measured(max(largest), curves={"derivative by another token": torch.tensor(largest)})


@probe(
    "L10",
    "In what fraction of pairs of tokens in this model does the earlier one depend on the later?",
    slow=True,
)
def later_tokens(subject: Subject) -> Measured:
    """After all blocks; of the output tokens 64 at most are looked at."""
    model, image = exact(subject)
    if not attends(model, image):
        raise CannotAsk("has no attention")
    encoder, x = _all_blocks(model, image)
    x = x.detach().requires_grad_()
    with torch.enable_grad(), plain_attention():
        y = encoder(x)[0]  # [tokens, dim]
    tokens = len(y)
    direction = torch.randn(y.shape[1], generator=torch.Generator().manual_seed(0)).to(y)
    rows = torch.linspace(0, tokens - 1, min(ROWS, tokens)).long().unique()[:-1]
    depends = []  # on each later token; the last token has none
    for i in rows.tolist():
        (slope,) = torch.autograd.grad(y[i] @ direction, x, retain_graph=True)
        depends.append(slope[0, i + 1 :].abs().sum(-1) > 0)
    return Measured(torch.cat(depends).double().mean().item(), baselines={"a causal mask": 0.0})


def _all_blocks(model: nn.Module, image: Tensor) -> tuple[OnTokens, Tensor]:
    """From the tokens that the first block reads to those that the last one gives."""
    names = row_of_blocks(model, image)
    with evaluating(model):
        read = read_by(model, names[0])(image)

    def function(tokens: Tensor) -> Tensor:
        def put(module: nn.Module, args: Any, kwargs: Any) -> Any:
            old = tensors_in((args, kwargs))[0]
            return tree_map_only(Tensor, lambda t: tokens if t is old else t, (args, kwargs))

        with before(one(model, names[0]), put), record(model, names[-1]) as seen:
            model(image)
        return seen[names[-1]]

    return function, read


def shuffled(subject: Subject) -> list[tuple[float, float]]:
    """How far each attention of shuffled tokens is from its shuffled output, and from its output.

    Relative to the largest entry of the output.
    """
    model, image = exact(subject)
    found = []
    for name in attention_of(model, image):
        function, x = on_tokens(model, name, image)
        order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            straight, other = function(x), function(x[:, order])
        size = straight.abs().max()
        if size == 0:
            raise CannotAsk(f"{name!r} gives zeros for every token")
        distances = ((other - like).abs().max() / size for like in (straight[:, order], straight))
        found.append((next(distances).item(), next(distances).item()))
    return found


@probe(
    "H10",
    "Does reordering the input tokens of this model's attention reorder its outputs in the same "
    "way and change nothing else?",
)
def equivariance(subject: Subject) -> Measured:
    """Largest relative difference of all attention layers, other arguments as they were."""
    errors = [equivariant for equivariant, _ in shuffled(subject)]
    return Measured(max(errors), curves={"difference": torch.tensor(errors)})


probe("C05", "Does this model's attention know in which order its tokens come?")(equivariance)


@probe(
    "V20",
    "By how much do the outputs of this model's attention change when its tokens are shuffled?",
)
def invariance(subject: Subject) -> Measured:
    """Relative change, the largest of all attention layers."""
    changes = [invariant for _, invariant in shuffled(subject)]
    return Measured(max(changes), curves={"change": torch.tensor(changes)})
