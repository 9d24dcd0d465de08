"""The boundary: what a stranger gives to a public function is checked by the function's types.

Inside, functions come from the files that define them, unchecked, and trust their callers.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import AbstractArray, jaxtyped
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from minivit import model
from minivit.recording import COMPILED

Function = TypeVar("Function", bound=Callable[..., Any])
KINDS: dict[Any, model.Kind] = model.KINDS | {
    int: ("a whole number", lambda x: isinstance(x, Integral) and type(x) is not bool),
    float: ("a number", lambda x: isinstance(x, Real) and type(x) is not bool and x == x),
    bool: ("True or False", lambda x: isinstance(x, bool | np.bool_)),
    Tensor: ("a tensor", lambda x: isinstance(x, Tensor)),
    nn.Module: ("an nn.Module", lambda x: isinstance(x, nn.Module)),
    Any: ("anything", lambda x: True),
}  # fmt: skip


class ArgumentError(TypeError, ValueError):
    """An argument is not of its type, or not of the shape or range of that."""


def guarded(package: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of a package, by name, each :func:`checked`."""
    return {name: checked(f) for name, f in package.items() if inspect.isfunction(f)}


def checked(function: Function) -> Function:
    """The same function; ArgumentError names what it is given that is not of its types."""
    signature = inspect.signature(function)
    hints = functools.cache(lambda: get_type_hints(inspect.unwrap(function)))  # at the first call

    @functools.wraps(function)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python's own error names the function
        for name, value in given.arguments.items():
            parameter = signature.parameters[name]
            words, fits = model.expected(hints().get(name, Any), _kind)
            for one in value if parameter.kind == parameter.VAR_POSITIONAL else [value]:
                with jaxtyped("context"):  # where the axes of no caller have lengths
                    right = one is parameter.default or fits(one)
                if not (right and all(map(_finite, tree_leaves(one)))):
                    words = "finite real numbers" if right else words
                    raise ArgumentError(f"expected {words} as {name}: got {_said(one)}")
            if isinstance(value, np.generic):  # which torch does not take for Python's
                given.arguments[name] = value.item()
        return function(*given.args, **given.kwargs)

    return boundary  # type: ignore[return-value]


def _kind(hint: Any) -> model.Kind:
    origin, options = get_origin(hint), get_args(hint)
    if origin is Callable:
        return "a function", callable
    if origin is not None and not issubclass(origin, Mapping):  # such as an iterable of tensors
        words, fits = model.expected(options[0], _kind)
        others = (str, Mapping, Tensor, np.ndarray) if options[0] is Tensor else (str, Mapping)
        return f"an iterable of {words.removeprefix('a ')}s", lambda x: (
            isinstance(x, origin) and not isinstance(x, others)
            and (not isinstance(x, list | tuple) or all(map(fits, x)))
        )  # fmt: skip
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        dtype = hint.dtype.__name__.lower()
        words = f"a tensor [{', '.join(hint.dim_str.split())}]"
        return f"{words} ({dtype})" if dtype != "shaped" else words, hint.__instancecheck__
    named = f"a {getattr(hint, '__module__', '')}.{getattr(hint, '__name__', hint)}"
    return KINDS.get(hint) or (named, lambda x: isinstance(getattr(x, COMPILED, x), origin or hint))


def _finite(value: Any) -> bool:
    number = isinstance(value, Tensor) and not value.is_meta
    return not number or (not value.is_complex() and bool(value.isfinite().all()))


def _said(value: Any) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return f"{type(value).__name__} {value.dtype} {list(value.shape)}"
    if isinstance(value, tuple) and len(value) < 4:
        return f"({', '.join(map(_said, value))})"
    return text if len(text := repr(value)) < 80 else type(value).__name__
