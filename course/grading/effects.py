"""What a call changes besides what it returns, where a check looks at it afterwards.

A call in a copy of the process leaves the original as it was. Checks that count the calls of a
function that they give, look at a module after a training step, or measure memory read this
instead: ``state`` in the copy, ``take_over`` in the original.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import nn

Within = AbstractContextManager | None


def state(inputs: tuple, within: Within) -> list[object]:
    """Of each object that a call may change: its entries, tensors or numbers."""
    return [_state(thing) for thing in _changeable(inputs, within)]


def take_over(inputs: tuple, within: Within, states: list[Any]) -> bool:
    """Bring the objects to the states that their copies were left in; whether these fit them."""
    try:
        for thing, after in zip(_changeable(inputs, within), states, strict=True):
            _set(thing, after)
    except (ValueError, TypeError, KeyError, RuntimeError):  # nothing that state has made
        return False
    return True


def _set(thing: Any, after: Any) -> None:
    if isinstance(thing, list):
        thing[:] = after
    elif isinstance(thing, nn.Module):
        thing.load_state_dict(after["values"])
        for name, parameter in thing.named_parameters():
            parameter.grad = after["gradients"][name]
    else:
        vars(thing).update({name: after[name] for name in _numbers(thing)})


def _state(thing: object) -> object:
    if isinstance(thing, list):
        return thing
    if isinstance(thing, nn.Module):
        return {
            "values": dict(thing.state_dict()),
            "gradients": {name: value.grad for name, value in thing.named_parameters()},
        }
    return _numbers(thing)


def _numbers(thing: object) -> dict[str, float]:
    return {name: value for name, value in vars(thing).items() if isinstance(value, int | float)}


def _changeable(inputs: tuple, within: Within) -> Iterator[Any]:
    """Modules given, the lists and objects that functions given hold, and what measures."""
    for value in inputs:
        if isinstance(value, nn.Module):
            yield value
        elif isinstance(value, MethodType) and not isinstance(value.__self__, torch.Tensor):
            yield value.__self__
        elif isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            held = (*cells, *(value.__defaults__ or ()))
            yield from (thing for thing in held if isinstance(thing, list))
    if within is not None:
        yield within
