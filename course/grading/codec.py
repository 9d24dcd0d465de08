"""What a copy of the process sends back: bytes that can be read without trusting who wrote them.

They are JSON, with tensors inside it; pickle would run what a student put into it. Besides its
result, a copy sends the ``state`` of what the call may have changed: modules, lists, meters.
"""

import base64
import json
import math
import numbers
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import FunctionType, MethodType
from typing import Any

import torch
from numpy import ndarray
from torch import Tensor, nn

KINDS = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool complex64 complex128"
DTYPES: dict[str, torch.dtype] = {f"torch.{kind}": getattr(torch, kind) for kind in KINDS.split()}
Within = AbstractContextManager | None


def encode(value: object) -> bytes:
    """Numbers, texts, tensors, and lists, tuples and dicts of them; of others only the type."""
    return json.dumps(_plain(value)).encode()


def decode(data: bytes) -> Any:
    """What encode was given. Where it had no place for a type: an object of one of that name."""
    try:
        return _value(json.loads(data))
    except (KeyError, TypeError, RuntimeError, RecursionError, ValueError) as error:
        raise ValueError(f"not what encode writes: {type(error).__name__}") from error


def _plain(value: object) -> dict:
    match value:
        case None | bool() | str():
            return {"plain": value}
        case numbers.Integral():
            return {"plain": int(value)}
        case numbers.Real():
            return {"plain": float(value)}
        case ndarray():
            return _plain(value.tolist())
        case list() | tuple() if type(value) in (list, tuple):  # no named tuple
            return {type(value).__name__: [_plain(item) for item in value]}
        case dict():
            return {"dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
        case Tensor() if value.layout == torch.strided and str(value.dtype) in DTYPES:
            flat = value.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
            data = flat.view(torch.uint8).numpy().tobytes() if len(flat) else b""
            text = base64.b64encode(data).decode()
            return {"dtype": str(value.dtype), "shape": list(value.shape), "data": text}
    return {"type": type(value).__name__, "text": repr(value)[:200]}


def _value(plain: dict) -> Any:
    match plain:
        case {"plain": None | bool() | int() | float() | str() as value}:
            return value
        case {"list": list(items)}:
            return [_value(item) for item in items]
        case {"tuple": list(items)}:
            return tuple(_value(item) for item in items)
        case {"dict": list(items)}:
            return {_value(key): _value(item) for key, item in items}
        case {"dtype": dtype, "shape": list(shape), "data": data}:
            raw = bytearray(base64.b64decode(data, validate=True))
            if math.prod(shape) * DTYPES[dtype].itemsize != len(raw):
                raise ValueError("a tensor's size and its data disagree")
            flat = torch.frombuffer(raw, dtype=DTYPES[dtype]) if raw else torch.empty(0)
            return flat.to(DTYPES[dtype]).reshape(shape)
        case {"type": str(name), "text": str(text)}:
            return type(name, (), {"__repr__": lambda self: text})()
    raise ValueError("an unknown kind of value")


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


def _state(thing: object) -> object:
    if isinstance(thing, nn.Module):
        gradients = {name: value.grad for name, value in thing.named_parameters()}
        return {"values": dict(thing.state_dict()), "gradients": gradients}
    return thing if isinstance(thing, list) else _numbers(thing)


def _set(thing: Any, after: Any) -> None:
    if isinstance(thing, nn.Module):
        thing.load_state_dict(after["values"])
        for name, parameter in thing.named_parameters():
            parameter.grad = after["gradients"][name]
    elif isinstance(thing, list):
        thing[:] = after
    else:
        vars(thing).update({name: after[name] for name in _numbers(thing)})


def _numbers(thing: object) -> dict[str, float]:
    return {name: value for name, value in vars(thing).items() if isinstance(value, int | float)}


def _changeable(inputs: tuple, within: Within) -> Iterator[Any]:
    """Modules given, the lists and objects that functions given hold, and what measures."""
    for value in inputs:
        match value:
            case nn.Module():
                yield value
            case MethodType() if not isinstance(value.__self__, Tensor):
                yield value.__self__
            case FunctionType():
                cells = [cell.cell_contents for cell in value.__closure__ or ()]
                held = (*cells, *(value.__defaults__ or ()))
                yield from (thing for thing in held if isinstance(thing, list))
    if within is not None:
        yield within
