"""Attention that is written out: products of two tensors before and after a softmax.

``q @ k.mT`` and ``torch.einsum("b i h d, b j h d -> b h i j", q, k)`` both multiply queries by
keys. Which axis is which is told by what is summed over, and by where the softmax is taken.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from einops import rearrange
from torch import Tensor


@dataclass(frozen=True)
class Axes:
    """What is made of a product: its two operands, that of the queries first, and its result."""

    operands: tuple[int, int]
    orders: tuple[str, str, str]  # of their axes, as they are recorded


@dataclass(frozen=True, eq=False)
class Product:
    """A product of two tensors, with a letter for each axis of both and of the result."""

    tensors: tuple[Tensor, Tensor]
    letters: tuple[str, str, str]
    equation: str | None = None  # of an einsum

    def __call__(self) -> Tensor:
        a, b = self.tensors
        return a @ b if self.equation is None else torch.einsum(self.equation, a, b)

    def scores(self, axis: int) -> Axes | None:
        """How queries and keys make scores, if a softmax over this axis makes them that."""
        key = self.letters[2][axis]
        query = int(key in self._own(0))
        return self._axes(query, key + self._summed()) if key == self._own(1 - query) else None

    def means(self, *weights: torch.Size) -> Axes | None:
        """How weights average values, if an operand has one of these shapes of the weights."""
        query = next((i for i in (0, 1) if self.tensors[i].shape in weights), None)
        return None if query is None else self._axes(query, self._summed() + self._own(1 - query))

    def _axes(self, query: int, second: str) -> Axes | None:
        """The axes of a product over one of them; ``second`` has the last two of the second."""
        rows, columns, summed, rest = (
            self._own(query),
            self._own(1 - query),
            self._summed(),
            self._rest(),
        )
        if not len(rows) == len(columns) == len(summed) == len(rest) - 1 == 1:
            return None
        return Axes(
            (query, 1 - query), (rest + rows + summed, rest + second, rest + rows + columns)
        )

    def recorded(self, i: int, axes: Axes) -> Tensor:
        """The first or second tensor of these, as it is recorded."""
        operand = axes.operands[i]
        return turned(self.tensors[operand], self.letters[operand], axes.orders[i])

    def put(self, i: int, tensor: Tensor, axes: Axes) -> "Product":
        """The product with another first or second tensor, given as it is recorded."""
        operand, (a, b) = axes.operands[i], self.tensors
        tensor = turned(tensor, axes.orders[i], self.letters[operand])
        return replace(self, tensors=(a, tensor) if operand else (tensor, b))

    def _own(self, operand: int) -> str:
        """The axes of the result that only this operand has."""
        other = self.letters[1 - operand]
        return "".join(x for x in self.letters[operand] if x in self.letters[2] and x not in other)

    def _summed(self) -> str:
        a, b, result = self.letters
        return "".join(x for x in a if x in b and x not in result)

    def _rest(self) -> str:
        """The axes of images and heads."""
        return "".join(x for x in self.letters[2] if x not in self._own(0) + self._own(1))


def product_of(name: str, args: tuple[Any, ...]) -> Product | None:
    """A call of a function of torch as a product with four axes, if it is one."""
    tensors = len(args) == 2 and all(isinstance(x, Tensor) and x.ndim == 4 for x in args)
    if tensors and name in ("matmul", "__matmul__"):
        return Product(args, ("bhid", "bhdj", "bhij"))
    if name == "einsum" and len(args) == 3 and isinstance(args[0], str):
        equation = args[0].replace(" ", "")
        operands, _, result = equation.partition("->")
        one, _, other = operands.partition(",")
        letters = one, other, result
        if len(result) == 4 and all(x.isalpha() and len({*x}) == len(x) for x in letters):
            return Product(args[1:], letters, equation)
    return None


def turned(tensor: Tensor, letters: str, order: str) -> Tensor:
    """A tensor with its axes in another order, of size 1 where it has none."""
    if letters == order:
        return tensor
    left = " ".join(x if x in order else "1" for x in letters)
    right = " ".join(x if x in letters else "1" for x in order)
    return rearrange(tensor, f"{left} -> {right}")
