"""A part of a model as a function: what goes in is free, all else is as the model has it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from minivit.recording.names import one


def sublayer(
    model: nn.Module, name: str, *inputs: Any
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """Takes a module out of a model, with the input that it gets in one call of the model::

        attention, x = sublayer(model, "blocks.3.attention", images)
        attention(x)  # what it gave in model(images)

    Masks and whatever else the module is called with stay as they were in that call. If it gets its
    input several times, as query, key and value, then ``x`` stands for all of them.

    Args:
        model: Any module.
        name: The name of one module in it, one of ``model.named_modules()``.
        *inputs: What to call the model with.

    Returns:
        The function, and its input.

    Raises:
        LookupError: No module has this name; the message lists near ones.
        ValueError: Several have.
        RuntimeError: The module did not run, or got or gives other than one floating tensor.
    """
    module = one(model, name)
    calls: list[tuple[Any, Any]] = []
    handle = module.register_forward_pre_hook(
        lambda _, args, kwargs: calls.append((args, kwargs)), with_kwargs=True
    )
    try:
        with torch.no_grad():
            model(*inputs)
    finally:
        handle.remove()
    read = [t for t in tree_leaves(calls[-1:]) if isinstance(t, Tensor) and t.is_floating_point()]
    if not read:
        raise RuntimeError(f"the model did not call {name!r} with a floating tensor")
    x, call = read[0], calls[-1]

    def function(y: Tensor) -> Tensor:
        args, kwargs = tree_map_only(Tensor, lambda t: y if t is x else t, call)
        given = [t for t in tree_leaves(module(*args, **kwargs)) if isinstance(t, Tensor)]
        if len(given) != 1:
            raise RuntimeError(f"expected one tensor from {name!r}: got {len(given)}")
        return given[0]

    return function, x.detach()
