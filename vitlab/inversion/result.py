"""The result of an inversion, with the distances at each evaluation along the way."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vitlab.inversion.solvers import Batch, Numbers


@dataclass(frozen=True, eq=False)
class Inversion:
    """What an inversion found, and all evaluations on the way: NaN where an image took fewer."""

    image: Batch  # the evaluated input with the smallest feature distance
    evaluations: Int[Tensor, " batch"]  # forward-backward passes
    feature_distance: Float[Tensor, "batch evaluations"]  # ‖O(x) - target‖
    input_distance: Float[Tensor, "batch evaluations"] | None  # ‖x - picture‖
    threshold: Numbers | None  # feature distance of the slightly shifted image
    arrived: Bool[Tensor, " batch"]  # whether only rounding is left of the feature distance
    picture: Batch | None  # the original image

    @property
    def psnr(self) -> Numbers | None:
        """PSNR of the image in dB, against the original's own range."""
        if self.picture is None or self.input_distance is None:
            return None
        best = self.feature_distance.nan_to_num(math.inf).argmin(1, keepdim=True)
        return decibels(self.input_distance.gather(1, best)[:, 0], self.picture)

    @property
    def met(self) -> list[int | None]:
        """The first evaluation, from 1, with a feature distance below the threshold."""
        if self.threshold is None:
            return [None] * len(self.evaluations)
        below = self.feature_distance < self.threshold[:, None]
        return [int(row.float().argmax()) + 1 if row.any() else None for row in below]


def padded(records: list[list[float]], like: Tensor) -> Float[Tensor, "batch longest"]:
    """Records of different lengths in float64, with NaN after their ends."""
    rows = [torch.tensor(record, dtype=torch.float64) for record in records]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=math.nan).to(like.device)


def decibels(
    distance: Float[Tensor, "batch *evaluations"], image: Batch
) -> Float[Tensor, "batch *evaluations"]:
    """PSNR at a Euclidean distance from an image, whose own range is the peak."""
    flat = image.flatten(1)
    peak = (flat.amax(1) - flat.amin(1)) * flat.shape[1] ** 0.5
    return 20 * torch.log10(peak.view(-1, *[1] * (distance.ndim - 1)) / distance)
