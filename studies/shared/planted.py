"""Images of which one part decides, known because they were put together, and a model of them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

import minivit
from minivit.data import Split
from minivit.networks.model import Model
from studies.shared.shape_models import fit

GRID = (4, 4)  # patches of an image, four in each quarter
VIT = {"image_size": 16, "patch_size": 4, "dim": 64, "depth": 3, "heads": 4}


@dataclass(frozen=True)
class Planted:
    """Images of 16 x 16 pixels: a digit in one quarter, pixels of other digits shuffled elsewhere.

    A shuffled digit is as bright as a digit, and only the digit tells the class.
    """

    images: Float[Tensor, "batch 1 16 16"]
    labels: Int64[Tensor, " batch"]
    quarters: Int64[Tensor, " batch"]  # where the digit is, in reading order

    @property
    def patches(self) -> Float[Tensor, "batch patches"]:
        """1 for the four patches of the digit, else 0."""
        row, column = torch.arange(4) // 2, torch.arange(4) // 2
        quarter = (2 * row[:, None] + column).flatten()  # of each patch
        return (quarter == self.quarters[:, None]).float()


def plant(digits: Split, number: int, *, seed: int, others: int | None = None) -> Planted:
    """Puts images together; ``others`` is another seed for what surrounds the digits."""
    draws = torch.Generator().manual_seed(seed)
    which = torch.randint(len(digits.images), (number,), generator=draws)
    quarters = torch.randint(4, (number,), generator=draws)
    around = torch.Generator().manual_seed(seed + 1000 if others is None else others)
    wrong = torch.randint(len(digits.images), (number, 4), generator=around)
    order = torch.rand(number, 4, 64, generator=around).argsort(-1)
    x = (digits.images.float() / 255 - 0.3) / 0.37
    shuffled = x[wrong].flatten(2).gather(2, order).view(number, 4, 8, 8)
    here = (torch.arange(4) == quarters[:, None])[..., None, None]
    tiles = torch.where(here, x[which], shuffled).unflatten(1, (2, 2))  # [n, 2, 2, 8, 8]
    images = tiles.transpose(2, 3).reshape(number, 1, 16, 16)
    return Planted(images, digits.labels[which], quarters)


def trained(digits: Split, *, seed: int, steps: int, number: int = 20_000) -> Model:
    """A ViT that has learnt to find and to read the digit."""
    torch.manual_seed(seed)
    model = minivit.create("vit_8px", **VIT)
    known = plant(digits, number, seed=10 + seed)
    fit(model, known.images, known.labels, steps=steps, seed=seed, rate=3e-3)
    return model
