"""Whether generated images show their class to models that did not make them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn

from vitlab.calls import logits, refuse_training


@dataclass(frozen=True, eq=False)
class Recognition:
    """What independent models, the judges, see in images."""

    judges: tuple[str, ...]
    seen: Int[Tensor, "judges batch"]  # the likeliest class
    probability: Float[Tensor, "judges batch"]  # of the class that the image was made for, float64
    recognised: Bool[Tensor, "judges batch"]  # whether that is the likeliest class

    @property
    def accuracy(self) -> Float[Tensor, " judges"]:
        """The fraction of the images that each judge recognises."""
        return self.recognised.double().mean(1)


@torch.no_grad()
def recognise(
    pictures: UInt8[Tensor, "batch channels height width"],
    classes: Int[Tensor, " batch"] | int,
    judges: Mapping[str, nn.Module],
) -> Recognition:
    """Asks models what they see in images::

        made = generate(vit, range(10))
        recognise(made.pictures, made.classes, {"resnet": resnet, "mixer": mixer}).accuracy

    The model that made an image gives it a high score by construction. A separately trained model,
    better still of another family, has other blind spots.

    Args:
        classes: The class that each was made for, or one for all.
        judges: Models by name, in evaluation mode and with the same classes in the same order, each
            with a ``preprocess`` that turns images into its input, as
            :func:`~minivit.loading.load` sets it.

    Raises:
        ValueError: A judge cannot prepare images, does not know a class, or is in training mode.
    """
    if pictures.dtype != torch.uint8 or not len(pictures):
        got = f"{list(pictures.shape)} of {pictures.dtype}"
        raise ValueError(f"expected uint8 images, one or more: got {got}")
    wanted = torch.as_tensor(classes).cpu().expand(len(pictures))
    answers = []
    for name, judge in judges.items():
        if getattr(judge, "preprocess", None) is None:
            raise ValueError(f"set {name}.preprocess, which turns uint8 images into its input")
        refuse_training(judge, name)
        prepare: Any = judge.preprocess
        answer = logits(judge, prepare(pictures)).double().cpu()
        if wanted.min() < 0 or wanted.max() >= answer.shape[1]:
            raise ValueError(f"{name} has {answer.shape[1]} classes: got {wanted.tolist()}")
        answers.append(answer.softmax(1))
    p = torch.stack(answers)  # [judges, n, all classes]
    seen = p.argmax(2)
    probability = p[:, torch.arange(len(wanted)), wanted]
    return Recognition(tuple(judges), seen, probability, seen == wanted)
