"""What an inversion found, and what every evaluation on the way gave."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Inversion:
    """What :func:`~minivit.inversion.optimise.invert` found, and all evaluations on the way.

    An evaluation is one forward and backward pass. Pictures may take different numbers of them:
    what a picture did not take is NaN. What needs the picture is none where only a target was
    given.
    """

    image: Tensor  # [batch, ...], the input with the smallest feature distance of all evaluated
    evaluations: Tensor  # [batch], forward-backward passes
    feature_distance: Tensor  # [batch, evaluations], ‖O(x) - target‖
    input_distance: Tensor | None  # [batch, evaluations], ‖x - picture‖
    threshold: Tensor | None  # [batch], feature distance of the slightly shifted picture
    arrived: Tensor  # [batch], whether what is left of the feature distance is rounding
    smallest: Tensor | None  # [batch], smallest singular value of the Jacobian at the image
    picture: Tensor | None  # [batch, ...], what the target was made from

    @property
    def stuck(self) -> Tensor:
        """Which searches failed, ``[batch]``, not arrived and never nearer than the start."""
        nearest = self.feature_distance.nan_to_num(math.inf).amin(1)
        return (nearest == self.feature_distance[:, 0]) & ~self.arrived

    @property
    def psnr(self) -> Tensor | None:
        """PSNR of the image in dB, against the picture's own range, ``[batch]``."""
        if self.picture is None or self.input_distance is None:
            return None
        best = self.feature_distance.nan_to_num(math.inf).argmin(1, keepdim=True)
        return decibels(self.input_distance.gather(1, best)[:, 0], self.picture)

    @property
    def met(self) -> list[int | None]:
        """The first evaluation, counted from 1, that met the source's criterion.

        That is a feature distance below the threshold. It does not certify that the picture was
        recovered: the distance between the two is bounded only by the feature distance over the
        smallest singular value, near the picture.
        """
        if self.threshold is None:
            return [None] * len(self.evaluations)
        return _first(self.feature_distance < self.threshold[:, None])

    def evaluations_to(self, psnr: float) -> list[int | None]:
        """The first evaluation, counted from 1, whose input was this near to the picture, in dB."""
        if self.picture is None or self.input_distance is None:
            return [None] * len(self.evaluations)
        return _first(decibels(self.input_distance, self.picture) >= psnr)


def _first(true: Tensor) -> list[int | None]:
    """The number, from 1, of the first true column of every row."""
    return [int(row.float().argmax()) + 1 if row.any() else None for row in true]


def padded(records: list[list[float]], like: Tensor) -> Tensor:
    """Records of different lengths as ``[batch, longest]`` in float64, NaN behind their ends."""
    rows = [torch.tensor(record, dtype=torch.float64) for record in records]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=math.nan).to(like.device)


def decibels(distance: Tensor, image: Tensor) -> Tensor:
    """PSNR at a distance from a picture, against the picture's own range.

    Args:
        distance: Euclidean, ``[batch]`` or ``[batch, evaluations]``.
        image: ``[batch, ...]``; the peak is its largest number less its smallest.

    Returns:
        ``20 log10(peak / root mean square error)``, shaped like ``distance``.
    """
    flat = image.flatten(1)
    peak = (flat.amax(1) - flat.amin(1)) * flat.shape[1] ** 0.5
    return 20 * torch.log10(peak.view(-1, *[1] * (distance.ndim - 1)) / distance)
