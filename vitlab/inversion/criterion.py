"""Distances of activations from their targets, at each evaluation, and what counts as near."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vitlab.krylov import Linearisation, Operator, linearise, norms, scaled

DIVERGED = 1e6  # times the first feature distance, above which an optimiser is stopped


class Diverged(ArithmeticError):
    """The optimiser moves away from the target without bound."""


class Match:
    """The objective ``½ ‖function(x) - target‖²`` of each image, and a record of evaluations.

    Optimisers see only what the methods return, and that depends on the target alone; distances to
    the original image, where it is known, are just recorded. Optimisers work on flat vectors
    ``[k, n]``, and say by ``entries`` to which images of the batch these belong.

    Args:
        shape: Of one image, ``n`` numbers.
        picture: The image that the target was made from, if known.
        precision: The dtype that the function computes in. Default: the target's.
    """

    def __init__(
        self,
        function: Operator,
        target: Float[Tensor, "batch ..."],
        shape: torch.Size,
        picture: Float[Tensor, "batch ..."] | None = None,
        precision: torch.dtype | None = None,
    ) -> None:
        self.shape = shape
        self.features: list[list[float]] = [[] for _ in target]  # ‖function(x) - target‖
        self.inputs: list[list[float]] = [[] for _ in target]  # ‖x - picture‖, or nothing
        self.best = target.new_zeros(len(target), shape.numel())  # the nearest in features
        self.least = target.new_full((len(target),), math.inf)  # its distance
        self._function = lambda x: function(x.view(-1, *shape)).flatten(1)
        self._target = target.flatten(1)
        self._picture = picture
        self._precision = precision or target.dtype
        self._rounding = 4 * torch.finfo(self._precision).eps * norms(target)

    @property
    def entries(self) -> Int[Tensor, " batch"]:
        """The indices of all images."""
        return torch.arange(len(self.least), device=self.least.device)

    def __call__(
        self, x: Float[Tensor, "k n"], entries: Int[Tensor, " k"]
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, "k n"]]:
        """One evaluation, forward and backward: the objective and its gradient."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            value = self._function(x)
        difference = value.detach() - self._target[entries]
        pull = scaled(lambda u: torch.autograd.grad(value, x, u)[0], self._precision)
        gradient = pull(difference)
        if self._note(x.detach(), entries, norms(difference)):
            self._check_start(gradient)
        return difference.square().sum(1) / 2, gradient

    def linearised(
        self, x: Float[Tensor, "k n"], entries: Int[Tensor, " k"]
    ) -> tuple[Linearisation, Float[Tensor, "k m"]]:
        """One evaluation that gives products with the Jacobian, and ``target - function(x)``."""
        at = linearise(self._function, x)
        push, pull = (scaled(product, self._precision) for product in (at.push, at.pull))
        at = Linearisation(at.value, push, pull)
        difference = self._target[entries] - at.value
        if self._note(x, entries, norms(difference)):
            self._check_start(at.pull(difference))
        return at, difference

    def again(self, entries: Int[Tensor, " k"]) -> None:
        """Counts a product with the Jacobian and one with its transpose as one evaluation."""
        for i in entries.tolist():
            for record in self.features[i], self.inputs[i]:
                record.extend(record[-1:])

    def arrived(self, entries: Int[Tensor, " k"]) -> Bool[Tensor, " k"]:
        """Whether only rounding is left of the distance."""
        return self.least[entries] <= self._rounding[entries]

    def check(self, entries: Int[Tensor, " k"]) -> None:
        """Stops an optimiser that diverges."""
        for i in entries.tolist():
            first, last = self.features[i][0], self.features[i][-1]
            if not last <= DIVERGED * first:
                raise Diverged(
                    f"the feature distance of image {i} went from {first:.3g} to {last:.3g} in "
                    f"{len(self.features[i])} evaluations: take a smaller step_size"
                )

    def _check_start(self, gradient: Tensor) -> None:
        """Raises where no optimiser can leave the start, by the gradients there."""
        arrived = self.arrived(self.entries)
        for i, slope in enumerate(gradient):
            first = self.features[i][0]
            if not (math.isfinite(first) and slope.isfinite().all()):
                raise Diverged(
                    f"the feature distance of image {i} is {first} where it starts, or its slope "
                    "not finite: take another start, or a wider dtype"
                )
            if not (slope.any() or arrived[i]):
                raise ValueError(
                    f"the feature distance of image {i} does not depend on the image where it "
                    "starts: is the model untrained? If not, take another start"
                )

    def _note(self, x: Tensor, entries: Tensor, distance: Tensor) -> bool:
        """Records an evaluation, and returns whether it was the first of all."""
        first = not self.features[0]
        better = distance < self.least[entries]
        self.best[entries[better]] = x[better]
        self.least[entries[better]] = distance[better]
        for i, d in zip(entries.tolist(), distance.tolist(), strict=True):
            self.features[i].append(d)
        if self._picture is not None:
            away = norms(x - self._picture[entries].flatten(1))
            for i, d in zip(entries.tolist(), away.tolist(), strict=True):
                self.inputs[i].append(d)
        return first


def dot(a: Float[Tensor, "k n"], b: Float[Tensor, "k n"]) -> Float[Tensor, " k"]:
    """The dot product of each pair of vectors."""
    return (a * b).sum(1)


def noise(like: Float[Tensor, "batch *image"], seed: int) -> Float[Tensor, "batch *image"]:
    """Standard normal numbers, the same for each image of a batch, on every device."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(like.shape[1:], dtype=torch.float64, generator=generator)
    return drawn.to(like).expand_as(like)


@torch.no_grad()
def shifted_distance(
    function: Operator,
    image: Float[Tensor, "batch ..."],
    std: float,
    seed: int = 0,
    activation: Float[Tensor, "batch ..."] | None = None,
) -> Float[Tensor, " batch"]:
    """How far an activation moves when the image is shifted a little: ``‖O(a + std z) - O(a)‖``.

    ``z`` is from N(0, 1), the same for all images; ``activation`` is ``O(a)`` where it is known. By
    the source's criterion, an input with an activation nearer than this to ``O(a)`` represents
    ``a``, however far the input itself is.
    """
    shifted = function(image + std * noise(image, seed))
    return norms(shifted - (function(image) if activation is None else activation))
