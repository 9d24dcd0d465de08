"""Parts of a model as functions: what goes in is free, all else is as the model has it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from minivit.recording.hooks import after, before
from minivit.recording.names import one


def refuse_training(model: nn.Module, name: str = "the model") -> None:
    """Refuses a model of which any part is in training mode: it is no fixed function.

    Raises:
        ValueError: It is; the message calls it ``name``.
    """
    if any(part.training for part in model.modules()):
        raise ValueError(f"{name} is in training mode and no fixed function: call eval() first")


def logits(model: nn.Module, images: Tensor) -> Tensor:
    """Gives a classifier's logits, ``[batch, classes]``, also where it wraps them in an object.

    Raises:
        ValueError: The model gives no logits.
    """
    output = model(images)
    found = getattr(output, "logits", output)  # as Hugging Face's classifiers have them
    if not isinstance(found, Tensor) or found.ndim != 2:
        got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(f"expected logits [batch, classes] of {type(model).__name__}: got {got}")
    return found


def sublayer(
    model: nn.Module, name: str, *inputs: Any
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """Takes a module out of a model, with the input that it gets in one call of the model::

        attention, x = sublayer(model, "blocks.3.attention", images)
        attention(x)  # what it gave in model(images)

    Masks and whatever else the module is called with stay as they were in that call. If it gets its
    input several times, as query, key and value, then ``x`` stands for all of them. What the
    function reads stays as it is, also where the module works in place.

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
    calls: list[Any] = []

    def note(_: nn.Module, *call: Any) -> None:
        copies: dict[int, Tensor] = {}  # of one tensor one: the module may change it in place

        def copied(t: Tensor) -> Tensor:
            return copies.setdefault(id(t), t.detach().clone())

        calls.append(tree_map_only(Tensor, copied, call))

    with before(module, note), torch.no_grad():
        model(*inputs)
    read = [t for t in tree_leaves(calls[-1:]) if isinstance(t, Tensor) and t.is_floating_point()]
    if not read:
        raise RuntimeError(f"the model did not call {name!r} with a floating tensor")
    x, call = read[0], calls[-1]

    def function(y: Tensor) -> Tensor:
        copy = y.clone()
        args, kwargs = tree_map_only(Tensor, lambda t: copy if t is x else t, call)
        return _one_tensor(module(*args, **kwargs), name)

    return function, x


class Reached(BaseException):
    """Ends a model's call at a named point. No Exception: one of those the model might catch."""

    def __init__(self, output: Any) -> None:
        self.output = output


def activation(model: nn.Module, name: str) -> Callable[[Tensor], Tensor]:
    """Gives the function from a model's input to what a module in it gives.

    The model runs no further than that module; if it runs more than once, no further than its first
    call. Between calls of the function the model is as it was. What the function reads stays as it
    is, also where the model works in place.

    Args:
        model: Any module that reads one tensor.
        name: The name of one module in it, one of ``model.named_modules()``; ``""`` is the model
            itself.

    Raises:
        TypeError, LookupError, ValueError: As for :func:`sublayer`.
        RuntimeError: When the function is called: the module did not run, or gave other than one
            tensor.
    """
    module = one(model, name)

    def stop(module: nn.Module, args: Any, output: Any) -> None:
        raise Reached(output)

    def function(x: Tensor) -> Tensor:
        try:
            with after(module, stop):
                model(x.clone())
        except Reached as reached:
            return _one_tensor(reached.output, name)
        raise RuntimeError(f"the model did not call {name!r}")

    return function


def _one_tensor(output: Any, name: str) -> Tensor:
    given = [t for t in tree_leaves(output) if isinstance(t, Tensor)]
    if len(given) != 1:
        raise RuntimeError(f"expected one tensor from {name!r}: got {len(given)}")
    return given[0]
