"""What a stranger gives instead of a valid argument, by the valid one's type."""

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.hostile.calls import FILES
from tests.parity import Function

NOTHING: Any = object()  # no valid argument means the same
Bad = tuple[str, Any, Any]  # its name, the value, and the valid one that means the same
ANYTHING = {
    "None": None, "text": "nonsense", "no text": "", "3": 3, "-1": -1, "1.5": 1.5, "nan": math.nan, "10^12": 10**12, "True": True, "object": object(),
    "[]": [], "{}": {}, "()": (), "a type": int, "a function": lambda *_, **__: None, "bytes": b"\x00\xff", "complex": 1j, "a tensor": torch.ones(2, 3), "an array": np.ones(2), "a set": {1},
    "a module": nn.Linear(3, 3), "Ellipsis": ..., "a slice": slice(3), "nested": [[1, 2], [3]], "torch.float16": torch.float16,
}  # fmt: skip
NOT_FINITE = (math.nan, math.inf, -math.inf)
INSTEAD_OF: dict[type, list[Any]] = {
    bool: ["no", "False", "", None, 2, 0.5, [], math.nan],
    int: [0, -1, -(10**6), 10**12, 2**63, -(2**64), 1.5, math.nan, math.inf, None, "3", 1j],
    float: [*NOT_FINITE, 0, -1.0, 1e30, -1e30, 1e-30, 10**400, None, "0.5", True, 1j],
    str: ["", "nonsense", "*", "blocks.99", "blocks.0.", "[", "\0", "ü\ud800", "x" * 5000, b"blocks.0", 3, None, ".weights", "../..", "  blocks.0"],
}  # fmt: skip
DTYPES = (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)  # fmt: skip


class Mine(Exception):
    """Raised by a function that was given; whoever calls it sees it as it is."""


def fail(*_: Any) -> Any:
    raise Mine("mine")


TENSORS: dict[str, Callable[[Tensor], Any]] = {
    "zeros": torch.zeros_like, "a list": Tensor.tolist, "on meta": lambda x: x.to("meta"), "sparse": Tensor.to_sparse, "a number": lambda x: torch.tensor(1.0),
    "of 1e-30": lambda x: x * 1e-30,
}  # fmt: skip
AXES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "empty": lambda x, i: x.narrow(i, 0, 0), "of 1": lambda x, i: x.narrow(i, 0, 1), "longer": lambda x, i: torch.cat([x, x.narrow(i, 0, 1)], i),
    "gone": lambda x, i: x.select(i, 0), "new": Tensor.unsqueeze,
}  # fmt: skip
ODD_ANSWERS: dict[str, Callable[[Tensor], Any]] = {
    "two": lambda t: (t, t), "None": lambda t: None, "one number": lambda t: t.sum(), "NaN": lambda t: t * math.nan, "1e30": lambda t: t * 1e30, "an error": fail,
    "classes": lambda t: t.argmax(-1), "numpy": lambda t: t.detach().numpy(), "a constant": torch.ones_like, "no gradient": Tensor.detach, "one less": lambda t: t[..., :-1],
    "noise": lambda t: t + torch.rand_like(t),
}  # fmt: skip
MODELS: dict[str, Callable[[Any], Any]] = {
    "its state": lambda m: m.state_dict(), "its type": type, "weights of NaN": lambda m: _with(m, lambda p: p * math.nan), "weights of 0": lambda m: _with(m, torch.zeros_like),
    "weights of 1e30": lambda m: _with(m, lambda p: p * 1e30), "in training": lambda m: copy.deepcopy(m).train(), "in float64": lambda m: copy.deepcopy(m).double(),
    "in float16": lambda m: copy.deepcopy(m).half(), "on meta": lambda m: copy.deepcopy(m).to("meta"), "in a list": lambda m: [m], "its forward": lambda m: m.forward,
    "DataParallel": nn.DataParallel, "no part": lambda m: nn.Sequential(), "a convolution": lambda m: nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 3)).eval(),
    "attention alone": lambda m: nn.MultiheadAttention(8, 2).eval(),
}  # fmt: skip
ROWS: dict[str, Callable[[Any], Any]] = {
    "shorter": lambda v: v[:-1], "longer": lambda v: (*v, *v[-1:]), "backwards": lambda v: v[::-1], "twice": lambda v: (*v, *v),
}  # fmt: skip
# What means the same as the valid argument.
SAME: dict[Any, dict[str, Callable[[Any], Any]]] = {
    Tensor: {"numpy": lambda x: x.detach().numpy(), "in a list": lambda x: [x], "a parameter": lambda x: nn.Parameter(x, requires_grad=False), "strided": lambda x: x.repeat_interleave(2, 0)[::2]},
    nn.Module: {"frozen": lambda m: copy.deepcopy(m).requires_grad_(False)}, bool: {"int": int, "np.bool_": np.bool_, "a tensor of it": torch.tensor},
    int: {"float": float, "np.int64": np.int64, "np.int32": np.int32, "a tensor of it": torch.tensor}, float: {"np.float64": np.float64, "a tensor of it": torch.tensor},
    Path: {"text of it": str}, tuple: {"list": list},
}  # fmt: skip


def hostile(value: Any, random: Random) -> Iterator[Bad]:
    """What is given instead: the name, the value, and a valid one that means the same, if any."""
    same = next((names for kind, names in SAME.items() if isinstance(value, kind)), {})
    yield from ((name, of(value), value) for name, of in same.items())
    yield from ((name, bad, NOTHING) for name, bad in _instead(value, random))
    if isinstance(value, Tensor):  # rounded and cast it means what it means cast back
        whole = (value * 3).round() if value.is_floating_point() else value
        yield from ((str(t), whole.to(t), whole.to(t).to(value.dtype)) for t in DTYPES)
    if isinstance(value, tuple | list | dict) and value:
        for place in [next(iter(value))] if isinstance(value, dict) else {0, len(value) - 1}:
            for name, bad, twin in hostile(value[place], random):
                new = NOTHING if twin is NOTHING else _put(value, place, twin)
                yield f"[{place}]: {name}", _put(value, place, bad), new
    yield from ((name, thing, NOTHING) for name, thing in ANYTHING.items())
    yield "a generator", (i for i in range(3)), NOTHING


def _instead(value: Any, random: Random) -> Iterator[tuple[str, Any]]:
    """Of the valid value's type."""
    match value:
        case Tensor():
            yield from _of(value, TENSORS)
            for i in range(value.ndim):
                yield from ((f"axis {i} {name}", of(value, i)) for name, of in AXES.items())
            yield "torch.complex64", value.to(torch.complex64)
            whole = not value.is_floating_point()
            for bad in (-1, 10**12, 3) if whole else (*NOT_FINITE, 1e30, -1e30):
                flat = value.detach().clone().flatten()
                flat[random.randrange(len(flat))] = bad % 256 if value.dtype == torch.uint8 else bad
                yield f"{bad} in it", flat.view_as(value)
        case nn.Module():
            yield from _of(value, MODELS)
            for name, answer in ODD_ANSWERS.items():
                yield f"which gives {name}", Function(lambda x, m, a=answer: a(m(x)), value)
        case bool() | int() | float():
            yield from ((repr(bad)[:20], bad) for bad in INSTEAD_OF[type(value)])
        case str() | Path():
            yield from ((repr(bad)[:20], bad) for bad in INSTEAD_OF[str])
            damaged = sorted((FILES / "damaged").iterdir()) if isinstance(value, Path) else []
            paths = *damaged, FILES, FILES / "none" / "x", Path(value)
            yield from ((path.name, path) for path in paths)
        case tuple() | list():
            yield from _of(value, ROWS)
        case dict():
            yield from ((repr(key), {key: of}) for of in value.values() for key in ("nonsense", 3))
        case _ if dataclasses.is_dataclass(value):
            yield from {"its fields": vars(value), "its type": type(value)}.items()
        case _ if callable(value):
            for name, of in ODD_ANSWERS.items():
                yield f"which gives {name}", lambda x, of=of: of(value(x))


def _of(value: Any, table: dict[str, Callable[[Any], Any]]) -> Iterator[tuple[str, Any]]:
    return ((name, of(value)) for name, of in table.items())


def _put(value: Any, place: Any, new: Any) -> Any:
    if isinstance(value, dict):
        return value | {place: new}
    return type(value)(new if i == place % len(value) else v for i, v in enumerate(value))


def _with(model: nn.Module, number: Callable[[Tensor], Tensor]) -> nn.Module:
    """A copy with other weights."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(number(p))
    return model
