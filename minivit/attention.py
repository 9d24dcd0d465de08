"""Attention weights, recorded and replaced where torch computes them, with no help from the model.

Attention is a call of ``F.scaled_dot_product_attention``, of ``F.multi_head_attention_forward``
(inside ``nn.MultiheadAttention``), or an explicit softmax. The first two never return their
weights, so they are replaced by their formula; a softmax is only observed. Either way the model
continues with the very tensor that is recorded, so gradients with respect to it are the model's.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function_unary

from minivit.hooks import after, before

# The last is called by the formula below, so that an outer recorder sees an inner one's result.
SOFTMAX = {torch.softmax, Tensor.softmax, F.softmax, torch._safe_softmax}


class AttentionListener(TorchFunctionMode):
    """Passes the attention weights computed inside chosen modules to ``keep``, while it is entered.

    What ``keep`` returns takes their place, unless it is None. A listener that only watches is told
    again when one entered later replaces what it was passed.

    Like all of torch's modes it is active only in the thread that entered it. It also keeps torch
    from the fast paths of ``nn.TransformerEncoderLayer`` and ``nn.MultiheadAttention``, which run
    whole layers without calling their modules.
    """

    def __init__(
        self,
        keep: Callable[[str, Float[Tensor, "batch heads queries keys"]], Tensor | None],
        *,
        watches: bool = True,
    ) -> None:
        super().__init__()
        self.keep = keep
        self.watches = watches
        # By name, a module that is running: whether it has shown weights.
        self.running: dict[str, bool] = {}
        # By name, the first softmax in which heads and images cannot be told apart.
        self.others: dict[str, torch.Size] = {}

    @contextmanager
    def inside(self, module: nn.Module, name: str) -> Iterator[None]:
        """Listens inside ``module``, and calls the weights ``name``."""

        def begin(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.running[name] = False

        def end(module: nn.Module, args: Any, output: Any) -> None:
            self.running.pop(name, None)

        with before(module, begin), after(module, end, always=True):
            yield

    def show(self, weights: Float[Tensor, "batch heads queries keys"]) -> Tensor:
        """Keeps weights for each running module, and gives those that the model continues with.

        A second time in one call is an error.
        """
        new = weights
        for name, shown in self.running.items():
            if shown:
                raise RuntimeError(
                    f"attention was computed more than once for {name!r} in one call: "
                    "name a smaller module, with one attention in it"
                )
            self.running[name] = True
            kept = self.keep(name, new)
            new = new if kept is None else kept
        return new if new is weights else continued(new)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if not self.running:
            return func(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            return self.scaled_dot_product_attention(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            return self.multi_head_attention_forward(*args, **kwargs)
        if func is continued and self.watches:
            for name, shown in self.running.items():
                if shown:
                    self.keep(name, args[0])
        result = func(*args, **kwargs)
        if func in SOFTMAX and softmax_axis(*args, **kwargs) in (-1, result.ndim - 1):
            # Heads have an axis of their own, and a row is a query.
            if result.ndim == 4:
                return self.show(result)
            if result.ndim in (3, 5):
                for name in self.running:
                    self.others.setdefault(name, result.shape)
        return result

    def scaled_dot_product_attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Computes ``F.scaled_dot_product_attention`` by its formula.

        Like the fused kernels it takes the softmax of half precision in float32, and returns zeros
        for a query that may attend to nothing.
        """
        if enable_gqa:  # several query heads share a head of keys and values
            key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
            value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
        device = query.device.type
        context: Any = nullcontext()
        if torch.amp.is_autocast_available(device):  # it is not on the meta device
            if torch.is_autocast_enabled(device):  # as autocast would do to the original call
                half = torch.get_autocast_dtype(device)
                query, key, value = query.to(half), key.to(half), value.to(half)
            context = torch.autocast(device, enabled=False)  # or it would round the products below
        with context:
            wide = torch.promote_types(query.dtype, torch.float32)
            scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
            scores = (query.to(wide) * scale) @ key.to(wide).mT  # [..., queries, keys]
            if is_causal:
                earlier = torch.ones_like(scores, dtype=torch.bool).tril()
                scores = scores.masked_fill(~earlier, -math.inf)
            if attn_mask is not None and attn_mask.dtype == torch.bool:
                scores = scores.masked_fill(~attn_mask, -math.inf)
            elif attn_mask is not None:
                scores = scores + attn_mask
            # Zeros, and no NaN, where all scores are -inf
            weights = self.show(torch._safe_softmax(scores, -1))
            if dropout_p > 0:
                weights = F.dropout(weights, dropout_p)
            return weights.to(value.dtype) @ value

    def multi_head_attention_forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs torch's own ``F.multi_head_attention_forward`` with its inner attention recorded.

        A copy of the function runs, with three of its global names replaced. Should torch rename
        them, nothing is recorded, and ``record`` raises.
        """
        heads = args[4]

        def softmax(scores: Tensor, dim: int) -> Tensor:  # [batch * heads, queries, keys]
            weights = F.softmax(scores.view(-1, heads, *scores.shape[1:]), dim)
            return self.show(weights).flatten(0, 1)

        original = F.multi_head_attention_forward
        names = {
            "scaled_dot_product_attention": self.scaled_dot_product_attention,  # need_weights=False
            "softmax": softmax,  # need_weights=True
            "has_torch_function": lambda _: False,  # or an outer recorder would take the call over
        }
        copy = FunctionType(original.__code__, vars(F) | names, argdefs=original.__defaults__)
        return copy(*args, **kwargs)


def continued(weights: Tensor) -> Tensor:
    """Weights that took the place of others, passed to the listeners that saw the others."""
    if has_torch_function_unary(weights):
        passed: Tensor = handle_torch_function(continued, (weights,), weights)
        return passed
    return weights


def softmax_axis(input: Tensor, dim: int | None = None, *_: Any, **__: Any) -> int | None:
    """The ``dim`` of a call of any function in ``SOFTMAX``."""
    return dim
