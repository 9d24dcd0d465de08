"""Distances of activations from their targets, at each evaluation, and what counts as near."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vitlab.inversion.solvers import Batch, Numbers
from vitlab.krylov.products import Linearisation, Operator, finite, linearise, norms

Vectors = Float[Tensor, "k n"]  # flat images, some of a batch
Scalars = Float[Tensor, " k"]
Entries = Int[Tensor, " k"]  # their indices in the batch
DIVERGED = 1e6  # times the first feature distance, above which an optimiser is stopped


class Diverged(ArithmeticError):
    """The optimiser moves away from the target without bound."""


class Match:
    """The objective ``½ ‖function(x) - target‖²`` of each image, and a record of evaluations.

    Optimisers see only what the methods return, not the original ``image``. They work on flat
    vectors ``[k, n]``, and say by ``entries`` to which images of the batch these belong.
    """

    def __init__(
        self, function: Operator, target: Batch, shape: torch.Size, image: Batch | None
    ) -> None:
        self.shape = shape  # of one image, n numbers
        self.features: list[list[float]] = [[] for _ in target]  # ‖function(x) - target‖
        self.inputs: list[list[float]] = [[] for _ in target]  # ‖x - image‖, or nothing
        self.best = target.new_zeros(len(target), shape.numel())  # the nearest in features
        self.least = target.new_full((len(target),), math.inf)  # its distance
        self.entries = torch.arange(len(target), device=target.device)  # of all images
        self._function = lambda x: function(x.view(-1, *shape)).flatten(1)
        self._target, self._image = target.flatten(1), image
        self._rounding = 4 * torch.finfo(target.dtype).eps * norms(target)

    def __call__(self, x: Vectors, entries: Entries) -> tuple[Scalars, Vectors]:
        """One evaluation, forward and backward: the objective and its gradient."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            value = self._function(x)
        difference = value.detach() - self._target[entries]
        (gradient,) = torch.autograd.grad(value, x, difference)
        self._note(x.detach(), entries, norms(difference), gradient)
        return difference.square().sum(1) / 2, gradient

    def linearised(
        self, x: Vectors, entries: Entries
    ) -> tuple[Linearisation, Float[Tensor, "k m"]]:
        """One evaluation that gives products with the Jacobian, and ``target - function(x)``."""
        at = linearise(self._function, x)
        difference = self._target[entries] - at.value
        self._note(x, entries, norms(difference), at.pull(difference))
        return at, difference

    def again(self, entries: Entries) -> None:
        """Counts a product with the Jacobian and one with its transpose as one evaluation."""
        for i in entries.tolist():
            for record in self.features[i], self.inputs[i]:
                record.extend(record[-1:])

    def arrived(self, entries: Entries) -> Bool[Tensor, " k"]:
        """Whether only rounding is left of the distance."""
        return self.least[entries] <= self._rounding[entries]

    def check(self, entries: Entries) -> None:
        """Stops an optimiser that diverges."""
        for i in entries.tolist():
            first, last = self.features[i][0], self.features[i][-1]
            if not last <= DIVERGED * first:
                way = f"from {first:.3g} to {last:.3g}"
                raise Diverged(f"the distance of image {i} went {way}: take a smaller step_size")

    def _note(self, x: Tensor, entries: Tensor, distance: Tensor, gradient: Tensor) -> None:
        """Records an evaluation, and refuses a start that no optimiser can leave."""
        first = not self.features[0]
        better = distance < self.least[entries]
        self.best[entries[better]] = x[better]
        self.least[entries[better]] = distance[better]
        columns = [(self.features, distance)]
        if self._image is not None:
            columns.append((self.inputs, norms(x - self._image[entries].flatten(1))))
        for records, numbers in columns:
            for i, number in zip(entries.tolist(), numbers.tolist(), strict=True):
                records[i].append(number)
        for i in entries.tolist() if first else ():
            if not (distance[i].isfinite() and gradient[i].isfinite().all()):
                what = f"the distance of image {i} is {distance[i]:g} where it starts"
                raise Diverged(f"{what}, or its slope not finite: take another start or dtype")
            if not (gradient[i].any() or self.arrived(self.entries)[i]):
                what = f"the distance of image {i} does not depend on the image where it starts"
                raise ValueError(f"{what}: is the model untrained? If not, take another start")


def dot(a: Vectors, b: Vectors) -> Scalars:
    """The dot product of each pair of vectors."""
    return (a * b).sum(1)


def noise(like: Float[Tensor, "batch *image"], seed: int) -> Float[Tensor, "batch *image"]:
    """Standard normal numbers, the same for each image of a batch, on every device."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(like.shape[1:], dtype=torch.float64, generator=generator)
    return drawn.to(like).expand_as(like)


@torch.no_grad()
def shifted_distance(function: Operator, image: Batch, std: float, seed: int = 0) -> Numbers:
    """How far an activation moves when the image is shifted by a little noise: the criterion."""
    moved = function(image + std * noise(image, seed)) - function(image)
    return norms(finite(moved, "an activation"))
