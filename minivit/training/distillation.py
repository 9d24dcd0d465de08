"""A trained model as the teacher of another: hard distillation, without the token that "Training
data-efficient image transformers & distillation through attention" (Touvron et al. 2021) adds."""

import copy
import hashlib
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from minivit.data.dataset import Data
from minivit.hub.families import OURS
from minivit.networks.model import Model
from minivit.networks.patches import pair

WEIGHT = 0.5  # of the loss on the teacher's decisions, beside that on the labels


class Teacher(nn.Module):
    """The classes that a model sees in a batch as its pupil gets it, augmented and mixed.

    Raises:
        TypeError: The model is not one of minivit's.
        ValueError: It is for images of another size, or of other classes.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: Model, data: Data) -> None:
        super().__init__()
        check(model, data)
        how: Any = model.preprocess
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        # Of its own images; those of the pupil may have been counted over fewer.
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


def check(model: Model, data: Data) -> None:
    """Refuses a teacher that does not know the images or the classes."""
    if not isinstance(model, Model):
        raise TypeError(f"expected a teacher that is {OURS}: got {type(model).__name__}")
    size, classes = (model.config.channels, *pair(model.config.image_size)), model.classes
    given = tuple(data.train.images.shape[1:])
    if size != given:
        said = ["{} channels, {} x {} pixels".format(*one) for one in (size, given)]
        raise ValueError(f"the teacher is for {said[0]}: {data.name} has {said[1]}")
    if model.preprocess is None or not classes or tuple(classes) != tuple(data.classes):
        raise ValueError(
            f"expected a trained teacher of the classes {', '.join(data.classes)}: got one of "
            + (", ".join(classes) if classes else "unnamed ones")
        )


def fingerprint(model: Model) -> str:
    """A hash of the weights."""
    content = hashlib.sha256()
    for tensor in model.state_dict().values():
        content.update(tensor.detach().cpu().contiguous().numpy().data)
    return content.hexdigest()[:16]
