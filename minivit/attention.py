"""Attention, recorded and replaced where torch computes it, with no help from the model.

Attention is a call of ``F.scaled_dot_product_attention``, of ``F.multi_head_attention_forward``
(inside ``nn.MultiheadAttention``), or an explicit softmax between two products. The first two never
return their weights, so they are replaced by their formula. The model continues with the very
tensors that are recorded, so gradients with respect to them are the model's.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from inspect import signature, unwrap
from threading import local
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode

from minivit.listening import AttentionListener, Told
from minivit.products import Product, product_of, turned

# Functions of torch are known by their names, since a library may have put its own around them.
SOFTMAX = {"softmax", "_safe_softmax"}
MULTI_HEAD = unwrap(F.multi_head_attention_forward)

Listeners = list[AttentionListener]

_here = local()  # the mode of each thread


@contextmanager
def listening(listener: AttentionListener) -> Iterator[None]:
    """Lets a listener hear of attention that is computed in this thread.

    This also keeps torch from the fast paths of ``nn.TransformerEncoderLayer`` and
    ``nn.MultiheadAttention``, which run whole layers without calling their modules.
    """
    mode: Interception = vars(_here).setdefault("mode", Interception())
    mode.listeners.append(listener)
    mode.begin()
    try:
        yield
    finally:
        mode.listeners.remove(listener)
        mode.end()


class Interception(TorchFunctionMode):
    """Of one thread: tells its listeners, those that replace first, what attention computes."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners: Listeners = []
        self.entered = False
        # The last product, the shape of its result, and what of it is to be recorded.
        self.product: tuple[Product, torch.Size, dict[str, Tensor]] | None = None
        self.logs: tuple[Tensor, Any] | None = None  # the last log_softmax, and its call
        # The shapes of the last weights, as computed and as recorded, and who was told of them.
        self.weights: tuple[torch.Size, torch.Size, Listeners] | None = None

    def begin(self) -> None:
        if not self.entered:
            super().__enter__()
            self.entered = True

    def end(self) -> None:
        """Leaves torch alone, as soon as no listener is left and no other mode is in the way."""
        self.product = self.logs = self.weights = None
        if not self.listeners and _get_current_function_mode() is self:
            super().__exit__(None, None, None)
            self.entered = False

    def active(self) -> Listeners:
        found = [listener for listener in self.listeners if listener.running]
        return sorted(found, key=lambda listener: listener.watches)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if not self.active():
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            return self.attend(*args, **kwargs)[0]
        if name == "multi_head_attention_forward":
            return self.multi_head(*args, **kwargs)
        if product := product_of(name, args):
            return self.multiply(product)
        if name in SOFTMAX:
            return self.softmax(func, *args, **kwargs)
        result = func(*args, **kwargs)
        if name == "log_softmax":
            self.logs = result, (func, args, kwargs)
        elif name == "exp" and self.logs and args[0] is self.logs[0]:
            logarithm, args, kwargs = self.logs[1]
            return self.softmax(lambda *x, **y: logarithm(*x, **y).exp(), *args, **kwargs)
        return result

    def multiply(self, product: Product) -> Tensor:
        """A product of weights and values, or one that may be of queries and keys."""
        if self.weights and (axes := product.means(*self.weights[:2])):
            told, self.weights = self.weights[2], None
            product = product.put(1, show(told, "values", product.recorded(1, axes)), axes)
            letters, order = product.letters[2], axes.orders[2]
            return turned(show(told, "heads", turned(product(), letters, order)), order, letters)
        axes, recorded = product.scores(-1), {}
        if not (axes or product.scores(-2)):
            return product()  # heads that are mixed, say
        if axes:
            for i, kind in enumerate(("queries", "keys")):
                if told := [listener for listener in self.active() if listener.wants(kind)]:
                    recorded[kind] = product.recorded(i, axes)
                    for listener in told:
                        recorded[kind] = listener.change(kind, recorded[kind])
                    product = product.put(i, recorded[kind], axes)
        result = product()
        self.product = product, result.shape, recorded
        return result

    def softmax(self, func: Any, scores: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A softmax, which is attention if it is taken over keys."""
        axis = softmax_axis(scores, *args, **kwargs)
        last = axis in (-1, scores.ndim - 1)
        if scores.ndim in (3, 5) and last:
            for listener in self.active():
                for name in listener.told():
                    listener.others.setdefault(name, scores.shape)
        product, shape, recorded = self.product or (None, None, {})
        certain = product is not None and shape == scores.shape
        letters, order = "bhij", "bhij"
        if product is not None and certain:
            axes = None if axis is None else product.scores(axis)
            letters, order = product.letters[2], axes.orders[2] if axes else ""
        elif scores.ndim == 4 and scores.shape[1] == scores.shape[3] != scores.shape[2]:
            letters = "bihj"  # as many as there are keys are queries, not heads
        if scores.ndim != 4 or not order or not (certain or last):
            return func(scores, *args, **kwargs)
        told = [listener for listener in self.active() if listener.begins(scores.shape, certain)]
        if not told:
            return func(scores, *args, **kwargs)
        self.product = None
        if certain and last:
            for listener in told:
                listener.confirm(recorded)
        scores = turned(show(told, "scores", turned(scores, letters, order)), order, letters)
        weights = turned(func(scores, *args, **kwargs), letters, order)
        new = turned(show(told, "weights", weights), order, letters)
        self.weights = new.shape, weights.shape, told
        return new

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Computes ``F.scaled_dot_product_attention`` by its formula, and its weights.

        Like the fused kernels it takes the softmax of half precision in float32, and returns zeros
        for a query that may attend to nothing.
        """
        if query.is_nested:
            raise RuntimeError(
                "expected attention weights [batch, heads, queries, keys]: got a nested tensor, in "
                "which images have different numbers of tokens; pad them to record attention"
            )
        shape = torch.Size((*query.shape[:-1], key.shape[-2]))
        told = [listener for listener in self.active() if listener.begins(shape, True)]
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
            query, key = show(told, "queries", query), show(told, "keys", key)
            value = show(told, "values", value)
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
            scores = show(told, "scores", scores)
            # Zeros, and no NaN, where all scores are -inf
            weights = show(told, "weights", torch._safe_softmax(scores, -1))
            if dropout_p > 0:
                weights = F.dropout(weights, dropout_p)
            return show(told, "heads", weights.to(value.dtype) @ value), weights

    def multi_head(self, *args: Any, **kwargs: Any) -> Any:
        """Runs torch's own ``F.multi_head_attention_forward`` with its inner attention recorded.

        A copy of the function runs, with two of its global names replaced. Should torch rename
        them, nothing is recorded, and ``record`` raises.
        """
        if (file := MULTI_HEAD.__code__.co_filename) != F.__file__:
            raise RuntimeError(f"{file} has replaced torch's functions: import minivit before it")
        call = signature(MULTI_HEAD).bind(*args, **kwargs)
        call.apply_defaults()
        wanted = call.arguments["need_weights"]
        if wanted:  # it calls scaled_dot_product_attention where they are not
            call.arguments |= {"need_weights": False, "is_causal": False}
        seen: list[Tensor] = []

        def attention(*args: Any, **kwargs: Any) -> Tensor:
            output, weights = self.attend(*args, **kwargs)
            seen.append(weights)
            return output

        names = {
            "scaled_dot_product_attention": attention,
            "has_torch_function": lambda _: False,  # or this would be called again
        }
        copy = FunctionType(MULTI_HEAD.__code__, vars(F) | names, argdefs=MULTI_HEAD.__defaults__)
        output, _ = copy(*call.args, **call.kwargs)
        if not wanted or not seen:
            return output, None
        weights = seen[0].mean(1) if call.arguments["average_attn_weights"] else seen[0]
        return output, weights if call.arguments["query"].ndim == 3 else weights.squeeze(0)


def show(listeners: Listeners, kind: str, tensor: Told) -> Tensor:
    """Keeps a tensor for each of these, and gives the one that the model continues with."""
    for listener in listeners:
        tensor = listener.show(kind, tensor)
    return tensor


def softmax_axis(input: Tensor, dim: int | None = None, *_: Any, **__: Any) -> int | None:
    """The ``dim`` of a call of any function in ``SOFTMAX``."""
    return dim
