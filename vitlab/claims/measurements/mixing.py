"""Which tokens a part of a model mixes, judged by which derivatives are zero."""

import copy
from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from minivit.recording import record
from vitlab.calls import sublayer
from vitlab.claims.measurements.parts import attends, attention_of, mlps_of, read_by
from vitlab.claims.measuring import Measured, Subject, measures, require
from vitlab.instruments.blocks import row_of_blocks
from vitlab.krylov.products import plain_attention

OnTokens = Callable[[Float[Tensor, "1 tokens dim"]], Float[Tensor, "1 tokens dim"]]
CHANNELS = 64  # of an output token, at most, with a backward pass for each
ROWS = 64  # output tokens, at most


def exact(subject: Subject, images: int = 1) -> tuple[nn.Module, Tensor]:
    """The model in float64, where no weight of attention is rounded to zero, and its images."""
    return copy.deepcopy(subject.model).double().eval(), subject.images[:images].double()


def on_tokens(
    subject: Subject, names: Callable[[nn.Module, Tensor], list[str]]
) -> Iterator[tuple[str, OnTokens, Tensor]]:
    """Parts of the exact model, as functions of tokens, and those that they read of an image."""
    model, image = exact(subject)
    for name in names(model, image):
        function, x = sublayer(model, name, image)
        same = x.ndim == 3 and len(x) == 1 and function(x).shape == x.shape
        require(same, f"{name!r} reads {list(x.shape)}, and does not give tokens of that shape")
        yield name, function, x


def influence(function: OnTokens, x: Tensor) -> tuple[int, Float64[Tensor, "tokens"]]:
    """The token in the middle, and the size of its output's derivatives by every token: the root of
    their mean square over channels of the output, times that of the number of channels."""
    token = x.shape[1] // 2
    x = x.detach().requires_grad_()
    with torch.enable_grad(), plain_attention():
        y = function(x)[0, token]  # [dim]
    drawn = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))[:CHANNELS]
    slopes = (torch.autograd.grad(y[c], x, retain_graph=True)[0][0] for c in drawn.tolist())
    squares = sum((slope.double().square().sum(-1) for slope in slopes), torch.zeros(()))
    return token, (squares * len(y) / len(drawn)).sqrt().cpu()


@measures("H12")
def reach_of_attention(subject: Subject) -> Measured:
    """Fraction of the tokens on which the one in the middle depends; the least of all layers."""
    fractions = []
    for _, function, x in on_tokens(subject, attention_of):
        fractions.append((influence(function, x)[1] > 0).double().mean().item())
    return Measured(min(fractions), curves={"fraction of the tokens": torch.tensor(fractions)})


@measures("R12")
def mlp_across_tokens(subject: Subject) -> Measured:
    """Largest derivative of the token in the middle by another one, of all MLPs."""
    largest = []
    for _, function, x in on_tokens(subject, mlps_of):
        token, slopes = influence(function, x)
        slopes[token] = 0
        largest.append(slopes.max().item())
    return Measured(max(largest), curves={"derivative by another token": torch.tensor(largest)})


@measures("L10", slow=True)
def later_tokens(subject: Subject) -> Measured:
    """Fraction of pairs of tokens of which the earlier, after all blocks, depends on the later."""
    model, image = exact(subject)
    require(attends(model, image), "has no attention")
    names = row_of_blocks(model, image)
    with torch.enable_grad(), plain_attention(), record(model, names[-1]) as recorded:
        x = read_by(model, names[0], copied=False)(image.requires_grad_())
    y = recorded[names[-1]][0]  # [tokens, dim]
    tokens = len(y)
    direction = torch.randn(y.shape[1], generator=torch.Generator().manual_seed(0)).to(y)
    rows = torch.linspace(0, tokens - 1, min(ROWS, tokens)).long().unique()[:-1]
    depends = []  # on each later token; the last token has none
    for i in rows.tolist():
        (slope,) = torch.autograd.grad(y[i] @ direction, x, retain_graph=True)
        depends.append(slope[0, i + 1 :].abs().sum(-1) > 0)
    return Measured(torch.cat(depends).double().mean().item(), baselines={"a causal mask": 0.0})


def shuffled(subject: Subject) -> Float64[Tensor, "2 layers"]:
    """How far each attention of shuffled tokens is from its shuffled output, and its output."""
    distances = []
    for name, function, x in on_tokens(subject, attention_of):
        order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            straight, other = function(x), function(x[:, order])
        size = straight.abs().max()
        require(size > 0, f"{name!r} gives zeros for every token")
        both = torch.stack([straight[:, order], straight])
        distances.append(((other - both).abs().flatten(1).amax(1) / size).cpu())
    return torch.stack(distances, 1)


@measures("H10", "C05")
def equivariance(subject: Subject) -> Measured:
    """Largest relative difference of all attention layers, other arguments as they were."""
    errors, _ = shuffled(subject)
    return Measured(errors.max().item(), curves={"difference": errors})


@measures("V20")
def invariance(subject: Subject) -> Measured:
    """Relative change, the largest of all attention layers."""
    _, changes = shuffled(subject)
    return Measured(changes.max().item(), curves={"change": changes})
