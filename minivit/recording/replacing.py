"""``replace``: the outputs and attention weights of named modules, exchanged during a block."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.recording.attention import AttentionListener
from minivit.recording.hooks import after, uncompiled
from minivit.recording.names import find, runnable
from minivit.recording.recorder import tensors_in

Replacement = Tensor | Callable[[Tensor], Tensor]


class Exchange(AttentionListener):
    """Lets the model continue with other attention weights than it computed."""

    def __init__(self, new: Callable[[str, Tensor], Tensor]) -> None:
        super().__init__(lambda name, weights: None)
        self.new = new

    def used(self, weights: Tensor) -> Tensor:
        self.show(weights)
        for name in self.running:
            weights = self.new(name, weights)
        return weights


@contextmanager
def replace(model: nn.Module, replacements: Mapping[str, Replacement]) -> Iterator[None]:
    """Gives a model other outputs or attention weights in the place of its own, for a block::

        with minivit.replace(model, {"blocks.2": tokens}):
            model(images)  # the blocks behind blocks.2 read these tokens
        with minivit.replace(model, {"blocks.*.attention.weights": lambda w: w.mean(0)}):
            model(images)  # every image is averaged by the mean weights of the batch

    Names are those of :func:`~minivit.recording.record`, and so are the models that it works on:
    minivit's, torchvision's, timm's, Hugging Face's. A replacement is a tensor that broadcasts to
    what it stands for, or a function of what the model computed, which gives one; the model goes on
    with it in the dtype and on the device of its own. Gradients flow into it. Neither the model nor
    its parameters are changed, and other threads run it as it is.

    To record what was replaced, enter :func:`~minivit.recording.record` inside this block.

    Raises:
        LookupError: A name matches nothing.
        TypeError: A replacement is neither a tensor nor a function.
        ValueError: What it gives is no tensor that broadcasts to what it stands for.
        RuntimeError: At the end of the block: something named never ran, or shows no attention
            weights with an axis each for images and heads; or an output is not one tensor.
    """
    for pattern, new in replacements.items():
        if not isinstance(new, Tensor) and not callable(new):
            raise TypeError(
                f"expected a tensor or a function in place of {pattern!r}: got {type(new).__name__}"
            )
    modules = runnable(model)
    found = {pattern: find(modules, [pattern]) for pattern in replacements}
    chosen = {
        name: replacements[pattern]
        for pattern, (outputs, weights) in found.items()
        for name in (*outputs, *weights)
    }
    used: set[str] = set()

    def exchanged(name: str, old: Tensor) -> Tensor:
        used.add(name)
        new = chosen[name]
        value = new(old) if callable(new) else new
        try:
            return value.to(old).expand_as(old)
        except (AttributeError, RuntimeError):
            got = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(
                f"expected a tensor that broadcasts to {list(old.shape)} in place of {name!r}: "
                f"got {got}"
            ) from None

    def output(name: str, module: nn.Module, args: Any, given: Any) -> Any:
        if (count := len(tensors_in(given))) != 1:
            raise RuntimeError(f"expected one tensor from {name!r}: got {count}")
        return tree_map_only(Tensor, lambda old: exchanged(name, old), given)

    listener = Exchange(exchanged)
    with ExitStack() as stack:
        stack.enter_context(uncompiled())
        for outputs, weights in found.values():
            for name, module in outputs.items():
                stack.enter_context(after(module, partial(output, name)))
            for name, module in weights.items():
                stack.enter_context(listener.inside(module, name))
        if any(weights for _, weights in found.values()):  # else torch's own kernels run
            stack.enter_context(listener)
        yield
    for pattern, (outputs, weights) in found.items():
        if used & (outputs.keys() | weights.keys()):
            continue
        why = (
            "shows no attention weights [images, heads, queries, keys]" if weights else "never ran"
        )
        raise RuntimeError(f"nothing was replaced for {pattern!r}, which {why} inside the block")
