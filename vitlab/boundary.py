"""The boundary: what a stranger gives to a public function is checked by the function's types.

Inside, functions come from the files that define them, unchecked, and trust their callers.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from math import inf, nextafter
from numbers import Integral, Real
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import torch
from jaxtyping import AbstractArray, jaxtyped
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from minivit import model
from minivit.recording import COMPILED


def _is_finite(x: Any) -> bool:
    return isinstance(x, Real) and type(x) is not bool and abs(x) < 1e300  # type: ignore[operator]


Function = TypeVar("Function", bound=Callable[..., Any])
KINDS: dict[Any, model.Kind] = model.KINDS | {
    int: ("a whole number", lambda x: isinstance(x, Integral) and type(x) is not bool),
    float: ("a number", _is_finite),
    bool: ("True or False", lambda x: isinstance(x, bool | np.bool_)),
    Tensor: ("a tensor", lambda x: isinstance(x, Tensor)),
    nn.Module: ("an nn.Module", lambda x: isinstance(x, nn.Module)),
    Any: ("anything", lambda x: True),
}  # fmt: skip

WHOLE, BELOW_1 = 2**63, nextafter(1, 0)  # from WHOLE on torch has no whole numbers
COUNTS = ["steps", "batch_size", "k", "points", "probes", "n", "channels", "components", "dpi"]
RANGES: dict[str, tuple[float, float]] = {  # a name means the same everywhere
    **dict.fromkeys([*COUNTS, "iterations", "restart", "jitter_step"], (1, 10**6)),
    **dict.fromkeys(["size", "shape", "picture_size", "patch_size"], (1, 10**6)),
    **dict.fromkeys(["attempts", "newton", "query", "jitter", "jitter_after"], (0, 10**6)),
    **dict.fromkeys(["cutoff", "low", "std", "blur", "damping", "tolerance"], (0, 1e9)),
    **dict.fromkeys(["power", "radius", "apart", "vmax", "step_size"], (0, 1e9)),
    **dict.fromkeys(["weight_decay", "mixup"], (0, 1e9)),
    **dict.fromkeys(["epochs", "minutes"], (1e-300, 1e9)),
    **dict.fromkeys(["learning_rate", "clip"], (1e-300, 1e300)),
    **dict.fromkeys(["warmup", "average", "label_smoothing", "shift", "cutout"], (0, BELOW_1)),
    **dict.fromkeys(["high", "width"], (0, inf)),
    **dict.fromkeys(["identity", "magnitude"], (0, 1)),
    **{"directions": (1, 2), "operations": (0, 8), "seed": (0, WHOLE - 1)},
}


class ArgumentError(TypeError, ValueError):
    """An argument is not of its type, or not of the shape or range of that."""


def guarded(package: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of a package, by name, each :func:`checked`."""
    return {name: checked(f) for name, f in package.items() if inspect.isfunction(f)}


def checked(function: Function) -> Function:
    """The same function or class; ArgumentError names an argument that is not of its type."""
    if inspect.isclass(function):
        setattr(function, "__init__", checked(function.__init__))  # noqa: B010
        return function
    signature = inspect.signature(function)
    hints = functools.cache(lambda: get_type_hints(inspect.unwrap(function)))  # at the first call

    @functools.wraps(function)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python's own error names the function
        with jaxtyped("context"):  # in which an axis has one length, and not that of a caller
            for name, value in given.arguments.items():
                parameter, hint = signature.parameters[name], hints().get(name, Any)
                kinds = [get_origin(kind) for kind in (hint, *get_args(hint))]
                if isinstance(value, list) and tuple in kinds:
                    value = given.arguments[name] = tuple(value)
                for one in value if parameter.kind == parameter.VAR_POSITIONAL else [value]:
                    if one is not parameter.default:
                        _check(name, one, hint, given.arguments)
                if isinstance(value, np.generic):  # which torch does not take for Python's
                    given.arguments[name] = value.item()
                elif get_origin(hint) is Callable and get_args(hint)[1] is Tensor:
                    given.arguments[name] = _answering(name, value)
        return function(*given.args, **given.kwargs)

    return boundary  # type: ignore[return-value]


def _check(name: str, value: Any, hint: Any, beside: Mapping[str, Any]) -> None:
    expected, fits = model.expected(hint, _kind)
    whole = isinstance(value, Integral)
    least, most = RANGES.get(name, (-WHOLE, WHOLE) if whole else (-inf, inf))
    leaves = tree_leaves(value)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    numbers: list[Any] = [n for n in leaves if isinstance(n, Real) and type(n) is not bool]
    if isinstance(value, float) and value == most == inf and name in RANGES:
        return
    if not fits(value):
        others = {k: t for k, t in beside.items() if isinstance(t, Tensor) and t is not value}
        shapes = ", ".join(f"{k} {list(t.shape)}" for k, t in others.items())
        with jaxtyped("context"):
            expected += f" that fits {shapes}" * fits(value)
    elif any(t.layout != torch.strided or t.is_meta for t in tensors):
        expected = "a dense tensor"
    elif any(t.is_complex() or not t.isfinite().all() for t in tensors):
        expected = "finite real numbers"
    elif not all(least <= number <= most for number in numbers):
        expected = f"from {least:,} to {most:,}"
    else:
        return
    raise ArgumentError(f"expected {expected} as {name}: got {_said(value)}")


def _answering(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    """The same function; ArgumentError where it gives no tensor of floating numbers."""

    @functools.wraps(function, updated=())
    def answer(*args: Any) -> Tensor:
        result = function(*args)
        if not isinstance(result, Tensor) or not result.is_floating_point() or not result.ndim:
            expected = f"a tensor of floating numbers from {name}"
            raise ArgumentError(f"expected {expected}: got {_said(result)}")
        return result

    return answer


def _kind(hint: Any) -> model.Kind:
    origin, options = get_origin(hint), get_args(hint)
    if origin is Callable:
        return "a function", callable
    if origin is not None and issubclass(origin, Mapping):
        (key, key_fits), (words, fits) = (model.expected(option, _kind) for option in options)

        def maps(x: Any) -> bool:
            return isinstance(x, origin) and all(key_fits(k) and fits(v) for k, v in x.items())

        return f"a mapping from {key} to {words}", maps
    if origin is not None:  # such as an iterable of tensors
        words, fits = model.expected(options[0], _kind)
        others = (str, Mapping, Tensor, np.ndarray) if options[0] is Tensor else (str, Mapping)
        several = words.replace("a mapping", "mappings") if "mapping" in words else f"{words}s"
        return f"an iterable of {several.removeprefix('a ')}", lambda x: (
            isinstance(x, origin) and not isinstance(x, others)
            and (not isinstance(x, list | tuple) or all(map(fits, x)))
        )  # fmt: skip
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        dtype = hint.dtype.__name__.lower()
        words = f"a tensor [{', '.join(hint.dim_str.split())}]"
        return f"{words} ({dtype})" if dtype != "shaped" else words, hint.__instancecheck__
    named = f"a {getattr(hint, '__module__', '')}.{getattr(hint, '__name__', hint)}"
    return KINDS.get(hint) or (named, lambda x: isinstance(getattr(x, COMPILED, x), origin or hint))


def _said(value: Any) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return f"{type(value).__name__} {value.dtype} {list(value.shape)}"
    if isinstance(value, tuple | list) and len(value) < 4:
        return f"({', '.join(map(_said, value))})"
    return text if len(text := repr(value)) < 80 else type(value).__name__
