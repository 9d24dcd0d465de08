"""Which tokens a model's output is read from, found by differentiating it."""

from collections.abc import Sequence
from contextlib import ExitStack
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
from vitlab.instruments.running import evaluating, expect


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
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    zeros = [module for module in linear if not module.weight.any()]
    for image in images.split(1):  # of more, tokens and images could not be told apart
        slope, later = _differentiated(model, image, last, "*.weights", zeros)
        read |= slope.any(1).cpu()
    expect(read.any(), *_asked(last, "an output whose gradient is zero at all of them"))
    # One attention is left, of some queries to these tokens, and the output depends on it.
    pools = [name for name, w in later.items() if w.grad is not None and w.grad.any()]
    if len(pools) != 1 or later[pools[0]].shape[-1] != last.tokens:
        return Reading(_alike(read.tolist()))
    name = pools[0].removesuffix("weights") + "heads"
    _, heads = _differentiated(model, image, last, name, zeros)
    (above,) = (tensor.grad for tensor in heads.values())  # [1, heads, queries, width]
    assert above is not None
    asked = above.transpose(1, 2).flatten(2).any(-1)[0]
    return Reading(_alike(read.tolist()), pools[0], tuple(asked.nonzero()[:, 0].tolist()))


def _alike(read: list[bool]) -> Float64[Tensor, "tokens"]:
    share = torch.tensor(read, dtype=torch.float64)
    return share / share.sum()


def _asked(last: Layout, got: str) -> tuple[str, str]:
    return f"read=[...], which of the {last.tokens} tokens {last.name!r} gives are read", got


@torch.inference_mode(False)  # in which nothing has a gradient
def _differentiated(
    model: nn.Module, image: Tensor, last: Layout, name: str, zeros: list[nn.Linear]
) -> tuple[Tensor, dict[str, Tensor]]:
    """The gradient at the last block's tokens, [tokens, dim], and what is recorded after them."""
    leaves: list[Tensor] = []
    earlier: set[str] = set()

    def put(output: Any) -> Any:
        found = [x for x in tensors_in(output) if tokens_of(x, last.tokens) is not None]
        expect(found, *_asked(last, f"tensors {[list(x.shape) for x in tensors_in(output)]}"))
        leaves[:] = [found[0].detach().clone().requires_grad_()]
        earlier.update(seen)
        return tree_map_only(Tensor, lambda x: leaves[0].clone() if x is found[0] else x, output)

    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        stack.enter_context(torch.enable_grad())
        for module in zeros:
            stack.enter_context(after(module, _with_other_weights, changes=True))
        seen = stack.enter_context(record(model, name))
        stack.enter_context(replace(model, {last.name: put}))
        output = model(image.clone())
    rows = [x for x in tensors_in(output) if x.ndim == 2 and len(x) == 1 and x.requires_grad]
    expect(rows, *_asked(last, "an output without a row for each image, or without a gradient"))
    later = {name: tensor for name, tensor in seen.items() if name not in earlier}
    for tensor in later.values():
        tensor.retain_grad()
    draw = torch.Generator().manual_seed(0)
    drawn = [(x.cpu() * torch.randn(x.shape, generator=draw)).sum() for x in rows]
    torch.autograd.backward(drawn, inputs=[*leaves, *later.values()])
    slope = leaves[0].grad
    assert slope is not None
    tokens = tokens_of(slope, last.tokens)
    assert tokens is not None
    return tokens, later


def _with_other_weights(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    weight = torch.randn(output.shape[-1], args[0].shape[-1], generator=torch.Generator())
    return output + F.linear(args[0], weight.to(args[0]))
