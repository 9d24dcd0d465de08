"""A learner's attempt under examination: calls of their function, and expectations of it."""

import numbers
import textwrap
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from numpy import ndarray
from torch import Tensor

T = TypeVar("T")
Outcomes = dict[Any, str]  # tensors or numbers, each with a message
Draw = Callable[..., Tensor]  # of normal numbers, of the shape given
Sizes = dict[str, int]  # of a tensor, by names of its axes

# In float64 a right answer is off by a ten-millionth of this, so no processor's rounding matters.
# It leaves room for a step that a learner takes in float32 and for 1e-6 added to a divisor; the
# nearest mistake that a check knows by name is off by nine times as much.
RTOL, ATOL = 1e-5, 1e-7
IN_PLACE = (
    "in place, and so the caller's own tensor, which is still needed. Make a new one: x = x + ... "
    "instead of x += ..., and no method that ends in _."
)
MIXED = "A check computes in float64: give what you make the dtype of the input."


class NotYet(Exception):
    """An expectation is not met; the text is written for the learner."""


class NotAttempted(Exception):
    """The function is still the stub."""


def normal_draws(seed: int) -> Draw:
    """A function of a shape that draws float64 normal numbers, always the same for a seed."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def close(actual: Tensor, expected: Tensor, slack: float = 1.0) -> bool:
    """Whether two tensors agree in shape and, up to RTOL and ATOL times the slack, in value."""
    return actual.shape == expected.shape and torch.allclose(
        actual, expected.to(actual.dtype), rtol=slack * RTOL, atol=slack * ATOL
    )


def alike(value: Tensor | float, actual: Tensor) -> Tensor:
    """A tensor as it is; a number as a tensor like the actual one, with this in every entry."""
    return value if isinstance(value, Tensor) else torch.full_like(actual, value)


class Attempt:
    """The learner's function under examination.

    A call of it calls the function and checks everything that is not the point of the exercise:
    exceptions, missing results, types, shapes, NaN, inputs changed in place. The global random
    state stays as it is.
    """

    def __init__(self, function: Callable):
        self.function = function
        self.axes = ""  # names of the result's, with commas between; "": one number
        self.checks = self.calls = 0  # passed so far; calls that gave a finite result
        self.applied: Callable = lambda function, *inputs: function(*inputs)  # what a call does

    def __call__(
        self,
        *inputs,
        shape: Sizes | None = None,
        dtype: torch.dtype | None = None,
        if_not_finite: str = "The result contains NaN or infinity.",
        within: AbstractContextManager | None = None,
        explain: Mapping[str, str] | None = None,
        listed: bool = False,
    ) -> Tensor:
        """Call the function and return its result if it is well formed.

        A result that is worked on before it is compared with outcomes, whose shape is that which it
        should have, needs ``shape``. Without ``dtype`` it must be that of the first input.
        ``within`` is entered for the call alone. ``explain`` has, by words of what would be said of
        an exception, what to say first. A list or an array will do if ``listed``.
        """
        try:
            result = self._call(inputs, within)
        except NotYet as reason:
            first = [text for words, text in (explain or {}).items() if words in str(reason)]
            raise NotYet(" ".join([*first, str(reason)])) from reason.__cause__
        if listed and isinstance(result, list | tuple | ndarray):
            with suppress(TypeError, ValueError):
                result = torch.tensor([float(x) for x in result], dtype=inputs[0].dtype)
        if not (shape or self.axes):
            result = _as_number(result)
        else:
            because = "" if dtype else " as the input has"
            result = _as_tensor(result, shape, dtype or inputs[0].dtype, because)
        self.expect(bool(torch.isfinite(result).all()), if_not_finite)
        self.calls += 1
        return result

    @property
    def scored(self) -> int:
        """Checks passed, without those that every finite result passes."""
        return self.checks - self.calls

    def plain(self, *inputs, kind: type[T]) -> T:
        """Call the function and return its result if it is of this type, a text or a tuple."""
        result = self._call(inputs, None)
        if not isinstance(result, kind):
            found, wanted = type(result).__name__, kind.__name__
            make = " tuple(...) makes one." if kind is tuple else ""
            raise NotYet(f"The result is of type {found}, expected {wanted}: {result!r}.{make}")
        return result

    def _call(self, inputs: tuple, within: AbstractContextManager | None) -> object:
        """The result, of whatever type; a bare NotImplementedError, as of stubs: NotAttempted."""
        before = [x.clone() if isinstance(x, Tensor) else x for x in inputs]
        with torch.random.fork_rng(devices=[]), within or nullcontext():
            try:
                result = self.applied(self.function, *inputs)
            except NotYet:
                raise
            except Exception as error:
                if isinstance(error, NotImplementedError) and not error.args:
                    raise NotAttempted from None
                raise NotYet(describe(error)) from error

        for position, (old, new) in enumerate(zip(before, inputs, strict=True), start=1):
            if isinstance(old, Tensor) and not torch.equal(old, new):
                raise NotYet(f"The function changes its argument {position} {IN_PLACE}")
        if result is None:
            raise NotYet("Nothing is returned. Is the return statement missing?")
        return result

    def expect(self, condition: bool | Tensor, message: str) -> None:
        """End the check with the message unless the condition holds."""
        if not condition:
            raise NotYet(message)
        self.checks += 1

    def expect_close(self, actual: Tensor, outcomes: Outcomes, slack: float = 1.0) -> None:
        """End the check with a message unless the result is the first of the outcomes.

        Outcomes are results, each with a message. First the right one: its message is said where no
        other fits, with the entry furthest off. Then what each mistake would lead to. A number
        stands for a tensor with this in every entry. Numbers all differ, as keys. With ``slack``
        entries may be off by so many times the usual tolerance.
        """
        (right, otherwise), *mistakes = outcomes.items()
        expected = alike(right, actual)
        if not close(actual, expected, slack):
            for wrong, message in mistakes:
                if close(actual, alike(wrong, actual), slack):
                    raise NotYet(message)
            if self.axes:
                names = self.axes.split(", ")[-expected.ndim :]
                _expect_shape(actual, dict(zip(names, expected.shape, strict=True)))
            at = torch.unravel_index((actual - expected).abs().argmax(), expected.shape)
            where = f"At {[i.item() for i in at]} it" if at else "It"
            values = f"{actual[at].item():.4g}, expected {expected[at].item():.4g}"
            raise NotYet(f"{otherwise} {where} is {values}.")
        self.checks += 1

    def expect_equal(self, result: object, outcomes: Mapping[str, object]) -> None:
        """The same for a text or a tuple of texts, by message: wrong ones may be equal here."""
        (otherwise, expected), *mistakes = outcomes.items()
        for message, wrong in mistakes:
            if result == wrong != expected:
                raise NotYet(message)
        self.expect(result == expected, f"{otherwise} You found {result!r}, expected {expected!r}.")


def describe(error: Exception) -> str:
    """The exception and, where Python knows it, the learner's line that led to it."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first calls, as Attempt._call
    frames = [frame for frame in frames if Path(frame.filename).parent != Path(__file__).parent]
    own = [frame.line for frame in frames if frame.filename == frames[0].filename]
    where = f' in the line "{own[-1]}"' if own and own[-1] else ""
    said = f"{type(error).__name__}{where}: {textwrap.shorten(str(error), 200)}"
    mixed = all(word in str(error).lower() for word in ("float", "double"))
    return f"{said}. {MIXED}" if mixed else said


def _as_number(result: object) -> Tensor:
    if isinstance(result, numbers.Real):
        return torch.tensor(float(result))
    if not isinstance(result, Tensor):
        raise NotYet(f"The result is of type {type(result).__name__}, expected one number.")
    if result.ndim:
        raise NotYet(f"The result has shape {list(result.shape)}, expected one number.")
    if not result.is_floating_point():
        raise NotYet(f"The result has dtype {result.dtype}, expected a floating point number.")
    return result.detach()


def _as_tensor(result: object, shape: Sizes | None, dtype: torch.dtype, because: str) -> Tensor:
    if not isinstance(result, Tensor):
        make = "torch.tensor makes one of numbers, torch.stack of tensors"
        found = type(result).__name__
        raise NotYet(f"The result is of type {found}, expected a torch.Tensor: {make}.")
    if shape:
        _expect_shape(result, shape)
    if result.dtype != dtype:
        raise NotYet(f"The result has dtype {result.dtype}, expected {dtype}{because}.")
    return result.detach()


def _expect_shape(result: Tensor, shape: Sizes) -> None:
    sizes, expected = list(result.shape), list(shape.values())
    if sizes != expected:
        named = ", ".join(f"{axis} {size}" for axis, size in shape.items())
        order = " The axes are in another order." if sorted(sizes) == sorted(expected) else ""
        raise NotYet(f"The result has shape {sizes}, expected [{named}].{order}")
