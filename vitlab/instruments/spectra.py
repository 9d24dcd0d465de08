"""Singular values of a Jacobian: what a layer keeps, stretches and loses of its input."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from vitlab import krylov
from vitlab.calls import expect
from vitlab.krylov.batches import Batch


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of a Jacobian at every entry of a batch."""

    values: Float[Tensor, "batch values"]  # descending
    errors: Float[Tensor, "batch values"]  # how far off at most; 0 from the whole Jacobian
    shape: tuple[int, int]  # rows and columns of a Jacobian: numbers out, numbers in

    @property
    def condition(self) -> Float[Tensor, "batch"]:
        """Largest over smallest singular value; by Lanczos a lower bound."""
        return self.values[:, 0] / self.values[:, -1]

    def rank(self, tolerance: float | None = None) -> Int64[Tensor, "batch"]:
        """Counts singular values above a fraction of the largest; default: of rounding."""
        full, count = min(self.shape), self.values.shape[1]
        got = f"{count} by Lanczos; ask for dense=True"
        expect(count == full, f"all {full} singular values for a rank", got)
        if tolerance is None:
            tolerance = max(self.shape) * torch.finfo(self.values.dtype).eps
        return (self.values > tolerance * self.values[:, :1]).sum(1)


def spectrum(
    function: krylov.Operator, x: Batch, *, dense: bool | None = None, steps: int = 100
) -> Spectrum:
    """Singular values of the Jacobian of a function::

        spectrum(model.blocks[3].mlp, tokens)
        spectrum(*sublayer(model, "blocks.3.attention", images))

    The function maps each entry of a batch independently, in float64 if small singular values
    count. ``dense`` computes the whole Jacobian, by default up to 2048 numbers on its shorter side
    and 4096 on its longer; beyond, only the extremes, as many as ``steps`` of Lanczos.
    """
    krylov.check_batch(x)
    given, dtype, wide = function, x.dtype, krylov.wide(x.dtype)

    def widened(x: Tensor) -> Tensor:
        return given(x.to(dtype)).to(wide)

    function, x = widened, x.to(wide)
    with torch.no_grad():
        shape = function(x.clone())[0].numel(), x[0].numel()
    if dense is None:
        dense = min(shape) <= 2048 and max(shape) <= 4096
    if not dense:
        line = krylov.linearise(function, x)
        push, pull, like = line.push, line.pull, x
        if shape[0] < shape[1]:  # begin in the smaller space
            push, pull, like = pull, push, line.value
        ends = krylov.singular_values(push, pull, krylov.random_like(like), steps)
        return Spectrum(ends.values.to(dtype), ends.errors.to(dtype), shape)
    matrices = (krylov.finite(krylov.jacobian(function, entry)[0]) for entry in x.split(1))
    values = torch.stack([torch.linalg.svdvals(matrix) for matrix in matrices]).to(dtype)
    return Spectrum(values, torch.zeros_like(values), shape)
