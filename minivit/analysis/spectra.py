"""Singular values of a Jacobian: what a layer keeps, stretches and loses of its input."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from minivit.krylov import (
    Extremes,
    Operator,
    check_batch,
    finite,
    jacobian,
    linearise,
    random_like,
    sign_margin,
    singular_values,
    wide,
    widened,
)
from minivit.recording import sublayer
from minivit.recording.calls import refuse_training


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of a Jacobian at every entry of a batch, and what follows from them."""

    values: Tensor  # [batch, k], descending
    errors: Tensor  # [batch, k]: how far off each is at most; 0 where computed from the matrix
    shape: tuple[int, int]  # rows and columns of a Jacobian: numbers out, numbers in
    # [batch], of the determinant: 1, -1, or 0 where rounding could have turned it; none where not
    # computed
    sign: Tensor | None
    logdet: Tensor | None  # [batch], log of the determinant's absolute value

    @property
    def complete(self) -> bool:
        """Whether all singular values are known, and not the extremes alone."""
        return self.values.shape[1] == min(self.shape)

    @property
    def condition(self) -> Tensor:
        """Largest over smallest singular value, ``[batch]``; a lower bound if not complete."""
        return self.values[:, 0] / self.values[:, -1]

    def rank(self, tolerance: float | None = None) -> Tensor:
        """Counts singular values above a share of the largest, ``[batch]``.

        Args:
            tolerance: The share. Default: rounding error, the longer side of the Jacobian in units
                in the last place.

        Raises:
            ValueError: Not all singular values are known.
        """
        self._need_all("the rank")
        if tolerance is None:
            tolerance = max(self.shape) * torch.finfo(self.values.dtype).eps
        return (self.values > tolerance * self.values[:, :1]).sum(1)

    @property
    def stable_rank(self) -> Tensor:
        """Sum of squared singular values over the largest square, ``[batch]``.

        Raises:
            ValueError: Not all singular values are known.
        """
        self._need_all("the stable rank")
        return (self.values / self.values[:, :1]).square().sum(1)

    @property
    def effective_rank(self) -> Tensor:
        """The exponential of the entropy of their shares, after Roy & Vetterli (2007), ``[batch]``.

        Raises:
            ValueError: Not all singular values are known.
        """
        self._need_all("the effective rank")
        shares = self.values / self.values.sum(1, keepdim=True)
        return torch.special.entr(shares).sum(1).exp()

    def _need_all(self, what: str) -> None:
        if not self.complete:
            raise ValueError(
                f"{what} needs all {min(self.shape)} singular values: got "
                f"{self.values.shape[1]} by Lanczos; ask for dense=True"
            )


def spectrum(
    function: Operator,
    x: Tensor,
    at: str | None = None,
    *,
    dense: bool | None = None,
    steps: int = 100,
) -> Spectrum:
    """Gives the singular values of a function's Jacobian, or of a module's inside a model::

        spectrum(model.blocks[3].mlp, tokens)
        spectrum(model, images, at="blocks.3.attention")

    Args:
        function: Maps ``[batch, ...]`` to ``[batch, ...]``, every entry alone, such as a module in
            evaluation mode. With ``at``, a model. One that draws at random in evaluation mode too,
            as Hugging Face's ViTMAE does its mask, is another function at each call.
        x: Where: the function's input, ``[batch, ...]``, in float64 if small singular values count.
            With ``at``, the model's input. In half precision the function is computed in that, and
            its values are as inexact; the algebra is in float32.
        at: The name of a module in the model, which is then the function, with the input that it
            gets. Default: the function itself.
        dense: Compute the whole Jacobian, one entry after the other. Default: up to 2048 numbers
            on its shorter side and 4096 on its longer; beyond, only the extremes, by Lanczos.
        steps: Of :func:`~minivit.krylov.singular_values`, and so how many it gives. Default: 100.

    Raises:
        TypeError: A name, and a function that is no module; an input of no floating numbers.
        LookupError, ValueError, RuntimeError: As for :func:`~minivit.recording.sublayer`.
        ValueError: An input that is no batch, or an empty one; a Jacobian that is not finite there;
            with ``at``, a model in training mode.
    """
    check_batch(x)
    if at is not None:
        if not isinstance(function, nn.Module):
            raise TypeError(
                f"at={at!r} names a part of an nn.Module: got {type(function).__name__}"
            )
        refuse_training(function)
        function, x = sublayer(function, at, x.clone())
    dtype = x.dtype
    function, x = widened(function, dtype), x.to(wide(dtype))
    with torch.no_grad():
        shape = function(x.clone())[0].numel(), x[0].numel()
    if dense is None:
        dense = min(shape) <= 2048 and max(shape) <= 4096
    if not dense:
        found = _extremes(function, x, steps)
        return Spectrum(found.values.to(dtype), found.errors.to(dtype), shape, None, None)
    matrices = (finite(jacobian(function, entry)[0]) for entry in x.split(1))
    square = shape[0] == shape[1]
    rows = []
    for matrix in matrices:
        signed = torch.linalg.slogdet(matrix) if square else (torch.empty(0), torch.empty(0))
        rows.append((torch.linalg.svdvals(matrix), *signed))
    values, sign, logdet = (torch.stack(t).to(dtype) for t in zip(*rows, strict=True))
    errors = torch.zeros_like(values)
    if not square:
        return Spectrum(values, errors, shape, None, None)
    sign = torch.where(sign_margin(values) > 1, sign, 0)
    return Spectrum(values, errors, shape, sign, logdet)


def _extremes(function: Operator, x: Tensor, steps: int) -> Extremes:
    """The outermost singular values of every entry, by Lanczos."""
    at = linearise(function, x)
    push, pull, like = at.push, at.pull, x
    if at.value[0].numel() < x[0].numel():  # begin in the smaller space
        push, pull, like = pull, push, at.value
    return singular_values(push, pull, random_like(like), steps)
