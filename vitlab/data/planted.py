"""Images of which one part decides the class, known because they are put together."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from vitlab.data.dataset import Labels, Part
from vitlab.data.loading import load_data


@dataclass(frozen=True)
class Planted:
    """Images of a digit, its label, in one of the ``quarters``, and shuffled ones in others."""

    images: UInt8[Tensor, "batch 1 16 16"]
    labels: Labels
    quarters: Int64[Tensor, " batch"]

    def patches(self, side: int = 4) -> Float[Tensor, "batch patches"]:
        """1 for patches of the digit and 0 for others, on a grid with an even ``side``."""
        half = torch.arange(side) // (side // 2)
        quarter = (2 * half[:, None] + half).flatten()  # of each patch
        return (quarter == self.quarters[:, None]).float()


def plant_digits(
    n: int, *, part: Part = "train", seed: int = 0, others: int | None = None
) -> Planted:
    """Puts images together of which it is known what decides, to test maps of what matters on.

    ``seed`` is that of the digits and of where they are, ``others`` that of what is around them.
    """
    digits = getattr(load_data("DIGITS"), part)
    draws = torch.Generator().manual_seed(seed)
    which = torch.randint(len(digits.images), (n,), generator=draws)
    quarters = torch.randint(4, (n,), generator=draws)
    around = torch.Generator().manual_seed(seed + 1000 if others is None else others)
    wrong = torch.randint(len(digits.images), (n, 4), generator=around)
    order = torch.rand(n, 4, 64, generator=around).argsort(-1)
    shuffled = digits.images[wrong].flatten(2).gather(2, order).view(n, 4, 8, 8)
    here = (torch.arange(4) == quarters[:, None])[..., None, None]
    tiles = torch.where(here, digits.images[which], shuffled).unflatten(1, (2, 2))  # [n, 2, 2, ...]
    images = tiles.transpose(2, 3).reshape(n, 1, 16, 16)
    return Planted(images, digits.labels[which], quarters)
