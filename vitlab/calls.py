"""Parts of a model as functions of their input, with everything else as in the model."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.hooks import after, before
from minivit.recording import one, tensors_in


def refuse_training(model: nn.Module, name: str = "the model") -> None:
    """Raises ValueError if any part of the model is in training mode: not a fixed function."""
    if any(part.training for part in model.modules()):
        raise ValueError(f"{name} is in training mode and not a fixed function: call eval() first")


def expect(holds: object, expected: str, got: object) -> None:
    """Raises ValueError, which says what was expected and what was given, unless that holds."""
    if not holds:
        raise ValueError(f"expected {expected}: got {got}")


def logits(model: nn.Module, images: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch classes"]:
    """A classifier's logits, unwrapped from Hugging Face's output object; ValueError if none."""
    output = model(images)
    output = getattr(output, "logits", output)
    if not isinstance(output, Tensor) or output.ndim != 2:
        got = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(f"expected logits [batch, classes] of {type(model).__name__}: got {got}")
    return output


def sublayer(
    model: nn.Module, name: str, *inputs: Any
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """Takes a module out of a model, with its input in one call ``model(*inputs)``::

        attention, x = sublayer(model, "blocks.3.attention", images)
        attention(x)  # its output in model(images)

    The module's other arguments, such as masks, stay as they were in that call. If it got its input
    several times, as query, key and value, the function's argument replaces all of them. The
    function does not change its argument, even if the module works in place. RuntimeError where
    the module did not run, or reads or returns other than one floating tensor.
    """
    module = one(model, name)
    calls: list[Any] = []

    def note(_: nn.Module, *call: Any) -> None:
        # The module may change what it reads in place. Of a tensor that comes twice: one copy.
        copies = {id(t): t.detach().clone() for t in tensors_in(call)}
        calls.append(tree_map_only(Tensor, lambda t: copies[id(t)], call))

    with before(module, note), torch.no_grad():
        model(*inputs)
    read = [t for t in tensors_in(calls[-1:]) if t.is_floating_point()]
    if not read:
        raise RuntimeError(f"the model did not call {name!r} with a floating tensor")
    x, call = read[0], calls[-1]

    def function(y: Tensor) -> Tensor:
        copy = y.clone()
        args, kwargs = tree_map_only(Tensor, lambda t: copy if t is x else t, call)
        return _one_tensor(module(*args, **kwargs), name)

    return function, x


class Reached(BaseException):
    """Ends a model's call early. Not an Exception, which the model might catch."""

    def __init__(self, output: Any) -> None:
        self.output = output


def activation(model: nn.Module, name: str) -> Callable[[Tensor], Tensor]:
    """The function from a model's input to the output of a module inside it, ``""`` for the model.

    The model reads one tensor, and stops after the module's first call. Of an output and attention
    weights the function gives the output. It does not change its argument, even if the model works
    in place. It raises RuntimeError where the module does not run, or returns other than one
    tensor; names are as for :func:`sublayer`.
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
    tensors = tensors_in(output)
    x, *others = tensors or [torch.empty(0)]
    weights = len(others) == 1 and x.ndim == 3 and others[0].shape[-2:] == (x.shape[1],) * 2
    if len(tensors) != 1 and not weights:
        raise RuntimeError(f"expected one tensor from {name!r}: got {len(tensors)}")
    return tensors[0]
