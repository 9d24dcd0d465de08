"""How near an activation is to its target, evaluation by evaluation, and what counts as near."""

import math

import torch
from torch import Tensor

from minivit.krylov import Linearisation, Operator, linearise, norms, scaled

DIVERGED = 1e6  # times the first feature distance, beyond which an optimiser is stopped


class Diverged(ArithmeticError):
    """The optimiser moves away from the target, beyond all bounds."""


class Match:
    """The objective ``½ ‖function(x) - target‖²`` of every picture, and a record of evaluations.

    An optimiser sees what the methods return, and that depends on the target alone. Distances to
    the picture itself, where it is known, are only recorded. Optimisers work on flat vectors, and
    name the pictures that these belong to by ``entries``, their numbers in the batch.

    Args:
        function: Maps pictures ``[batch, ...]`` to activations ``[batch, ...]``, every one alone.
        target: The activations to reach.
        shape: The shape of one picture, ``n`` numbers.
        picture: What the target was made from, if known: ``[batch, ...]``.
        precision: What the function computes in. Default: the target's dtype.
    """

    def __init__(
        self,
        function: Operator,
        target: Tensor,
        shape: torch.Size,
        picture: Tensor | None = None,
        precision: torch.dtype | None = None,
    ) -> None:
        self.shape = shape
        self.features: list[list[float]] = [[] for _ in target]  # ‖function(x) - target‖
        self.inputs: list[list[float]] = [[] for _ in target]  # ‖x - picture‖, or nothing
        self.best = target.new_zeros(len(target), shape.numel())  # the nearest in features
        self.least = target.new_full((len(target),), math.inf)  # its distance
        self._function = lambda x: function(x.view(-1, *shape)).flatten(1)
        self._target, self._picture = target.flatten(1), picture
        self._precision = precision or target.dtype
        self._rounding = 4 * torch.finfo(self._precision).eps * norms(target)

    @property
    def entries(self) -> Tensor:
        """The numbers of all pictures, ``[batch]``."""
        return torch.arange(len(self.least), device=self.least.device)

    def __call__(self, x: Tensor, entries: Tensor) -> tuple[Tensor, Tensor]:
        """One evaluation, forward and backward: the objective ``[k]``, its gradient ``[k, n]``."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            value = self._function(x)
        difference = value.detach() - self._target[entries]
        pull = scaled(lambda u: torch.autograd.grad(value, x, u)[0], self._precision)
        gradient = pull(difference)
        if self._note(x.detach(), entries, norms(difference)):
            self._check_start(gradient)
        return difference.square().sum(1) / 2, gradient

    def linearised(self, x: Tensor, entries: Tensor) -> tuple[Linearisation, Tensor]:
        """One evaluation that also gives products with the Jacobian, and the difference to go."""
        at = linearise(self._function, x)
        push, pull = (scaled(product, self._precision) for product in (at.push, at.pull))
        at = Linearisation(at.value, push, pull)
        difference = self._target[entries] - at.value
        if self._note(x, entries, norms(difference)):
            self._check_start(at.pull(difference))
        return at, difference

    def again(self, entries: Tensor) -> None:
        """Counts products with a Jacobian and its transpose, which cost an evaluation, as one."""
        for i in entries.tolist():
            for record in self.features[i], self.inputs[i]:
                record.extend(record[-1:])

    def arrived(self, entries: Tensor) -> Tensor:
        """Whether what is left of the distance is rounding, ``[k]``."""
        return self.least[entries] <= self._rounding[entries]

    def check(self, entries: Tensor) -> None:
        """Stops an optimiser that runs away.

        Raises:
            Diverged: A feature distance is not finite, or a million times what it was at first.
        """
        for i in entries.tolist():
            first, last = self.features[i][0], self.features[i][-1]
            if not last <= DIVERGED * first:
                raise Diverged(
                    f"the feature distance of picture {i} went from {first:.3g} to {last:.3g} in "
                    f"{len(self.features[i])} evaluations: take a smaller step_size"
                )

    def _check_start(self, gradient: Tensor) -> None:
        """Refuses starts that no optimiser can leave, by the gradients there, ``[batch, n]``."""
        for i, there in enumerate(~self.arrived(self.entries)):
            first, slope = self.features[i][0], gradient[i]
            if not math.isfinite(first):
                what = f"feature distance of picture {i} is {first}"
            elif not slope.isfinite().all():
                what = f"slope of picture {i} is not finite"
            elif there and not slope.any():
                raise ValueError(
                    f"the feature distance of picture {i} does not depend on the picture where it "
                    "starts: is the model untrained? If not, take another start"
                )
            else:
                continue
            raise Diverged(f"the {what} where it starts: take another start, or a wider dtype")

    def _note(self, x: Tensor, entries: Tensor, distance: Tensor) -> bool:
        """Records an evaluation, and says whether it was the first of all."""
        first = not self.features[0]
        better = distance < self.least[entries]
        self.best[entries[better]], self.least[entries[better]] = x[better], distance[better]
        for i, d in zip(entries.tolist(), distance.tolist(), strict=True):
            self.features[i].append(d)
        if self._picture is not None:
            away = norms(x - self._picture[entries].flatten(1))
            for i, d in zip(entries.tolist(), away.tolist(), strict=True):
                self.inputs[i].append(d)
        return first


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The product of every two vectors, ``[k, n]`` each, to ``[k]``."""
    return (a * b).sum(1)


def noise(like: Tensor, seed: int) -> Tensor:
    """Standard normal numbers, the same for every picture of a batch, on every device."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(like.shape[1:], dtype=torch.float64, generator=generator)
    return drawn.to(like).expand_as(like)


@torch.no_grad()
def shifted_distance(
    function: Operator, image: Tensor, std: float, seed: int = 0, activation: Tensor | None = None
) -> Tensor:
    """How far an activation moves when the picture is shifted a little.

    ``‖O(a + std * z) - O(a)‖`` with ``z`` from N(0, 1): an input whose activation is nearer than
    that to ``O(a)`` counts as a representation of ``a`` by the source's criterion. That says
    nothing about how near the input itself is.

    Args:
        function: ``O``, on ``[batch, ...]``.
        image: ``a``, ``[batch, ...]``. All pictures get the same ``z``.
        std: The size of the shift.
        seed: For ``z``.
        activation: ``O(a)``, where it is known.

    Returns:
        ``[batch]``.
    """
    shifted = function(image + std * noise(image, seed))
    return norms(shifted - (function(image) if activation is None else activation))
