"""A trained model as the teacher of another: hard distillation, without the token that "Training
data-efficient image transformers & distillation through attention" (Touvron et al. 2021) adds."""

import copy
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from minivit.model import Model
from vitlab.data.dataset import Data
from vitlab.training.checks import check_teacher

WEIGHT = 0.5  # of the loss on the teacher's decisions, beside that on the labels


class Teacher(nn.Module):
    """The classes that a model sees in a batch as its student gets it, augmented and mixed.

    Raises:
        TypeError: The model is not one of minivit's.
        ValueError: It is for images of another size, or of other classes.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: Model, data: Data) -> None:
        super().__init__()
        check_teacher(model, data)
        how: Any = model.preprocess
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        # Of its own images; those of the student may have been counted over fewer.
        for name, of in (("mean", how.mean), ("std", how.std)):
            self.register_buffer(name, torch.tensor(of).view(-1, 1, 1))

    @torch.no_grad()
    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        mean: Float[Tensor, "channels 1 1"],
        std: Float[Tensor, "channels 1 1"],
    ) -> Int[Tensor, " batch"]:
        """Decides, for images that were normalised with these."""
        return self.model((images * std + mean - self.mean) / self.std).argmax(1)
