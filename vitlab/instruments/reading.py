"""Which tokens a model's output is read from, found by differentiating it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float64
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.hooks import after
from minivit.recording import record, tensors_in
from minivit.replacing import replace
from vitlab.instruments.attentions import tokens_of
from vitlab.instruments.layout import Layout
from vitlab.instruments.running import entered, evaluating, expect


@dataclass(frozen=True, eq=False)
class Reading:
    """How much of the output is read from each token after the last block with attention."""

    share: Float64[Tensor, "tokens"]
    pooling: str = ""  # the attention that pools the tokens, if the model has one
    queries: tuple[int, ...] = ()  # those of it that are read

    def of(self, model: nn.Module, images: Tensor) -> Float64[Tensor, "batch tokens"]:
        """For each of these images; they differ only where attention pools the tokens."""
        if not self.pooling:
            return self.share.expand(len(images), -1)
        with evaluating(model), record(model, self.pooling) as seen:
            model(images)
        weights = seen[self.pooling]  # [batch, heads, queries, tokens]
        return weights[:, :, self.queries].double().mean((1, 2)).cpu()


def reading(
    model: nn.Module, images: Tensor, last: Layout, given: Sequence[int] | None = None
) -> Reading:
    """Finds the tokens that a model reads, or takes those that are given, by index.

    The gradient of the output is exactly zero at tokens that are not read. Those that are count
    alike, unless attention of the model's own pools them, whose weights then count. ValueError if
    the output has no row for each image, or no gradient.
    """
    if given is not None:
        inside = len({*given}) == len(given) > 0 and all(0 <= i < last.tokens for i in given)
        expect(inside, f"read: indices of some of {last.tokens} tokens", given)
        return Reading(_alike([i in given for i in range(last.tokens)]))
    read = torch.zeros(last.tokens, dtype=torch.bool)
    # A head of zeros, as before training, would read nothing.
    zeros = [m for m in model.modules() if isinstance(m, nn.Linear) and not m.weight.any()]
    for image in images.split(1):  # of more, tokens and images could not be told apart
        slope, pools = _differentiated(model, image, last, zeros)
        read |= slope.any(1).cpu()
    expect(read.any(), *_asked(last, "an output whose gradient is zero at all of them"))
    share = _alike(read.tolist())
    if [slope.shape[-1] for slope in pools.values()] != [last.tokens]:
        return Reading(share)
    ((name, slope),) = pools.items()  # one attention is left, [1, heads, queries, tokens]
    queries = slope[0].any(0).any(1).nonzero()[:, 0]
    return Reading(share, name, tuple(queries.tolist()))


def _alike(read: list[bool]) -> Float64[Tensor, "tokens"]:
    share = torch.tensor(read, dtype=torch.float64)
    return share / share.sum()


def _asked(last: Layout, got: str) -> tuple[str, str]:
    return f"read=[...], which of the {last.tokens} tokens {last.name!r} gives are read", got


@torch.inference_mode(False)  # in which nothing has a gradient
def _differentiated(
    model: nn.Module, image: Tensor, last: Layout, zeros: list[nn.Linear]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Slopes at the last block's tokens, [tokens, dim], and of attention after it, if not zero."""
    leaves: list[Tensor] = []
    earlier: set[str] = set()

    def put(output: Any) -> Any:
        found = [x for x in tensors_in(output) if tokens_of(x, last.tokens) is not None]
        expect(found, *_asked(last, f"tensors {[list(x.shape) for x in tensors_in(output)]}"))
        leaves[:] = [found[0].detach().clone().requires_grad_()]
        earlier.update(seen)
        return tree_map_only(Tensor, lambda x: leaves[0].clone() if x is found[0] else x, output)

    drawn = entered(after(module, _with_other_weights, changes=True) for module in zeros)
    leaf = replace(model, {last.name: put})
    with evaluating(model), torch.enable_grad(), drawn, record(model, "*.weights") as seen, leaf:
        output = model(image.clone())
    rows = [x for x in tensors_in(output) if x.ndim == 2 and len(x) == 1 and x.requires_grad]
    expect(rows, *_asked(last, "an output without a row for each image, or without a gradient"))
    later = {name: tensor for name, tensor in seen.items() if name not in earlier}
    draw = torch.Generator().manual_seed(0)
    sums = [(x.cpu() * torch.randn(x.shape, generator=draw)).sum() for x in rows]
    parts = [*leaves, *later.values()]
    slope, *slopes = torch.autograd.grad(sums, parts, materialize_grads=True)
    tokens = tokens_of(slope, last.tokens)
    assert tokens is not None
    return tokens, {name: at for name, at in zip(later, slopes, strict=True) if at.any()}


def _with_other_weights(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    weight = torch.randn(output.shape[-1], args[0].shape[-1], generator=torch.Generator())
    return output + F.linear(args[0], weight.to(args[0]))
