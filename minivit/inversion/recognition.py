"""Whether generated pictures show their class to anybody else: to models that did not make them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from minivit.recording.calls import logits, refuse_training


@dataclass(frozen=True, eq=False)
class Recognition:
    """What independent models, the judges, see in pictures."""

    judges: tuple[str, ...]
    seen: Tensor  # int64 [judges, n], the likeliest class
    probability: Tensor  # [judges, n], of the class that the picture was made for, float64
    recognised: Tensor  # [judges, n], whether that is the likeliest class

    @property
    def accuracy(self) -> Tensor:
        """The share of the pictures that each judge recognises, ``[judges]``."""
        return self.recognised.double().mean(1)


@torch.no_grad()
def recognise(
    pictures: Tensor, classes: Tensor | int, judges: Mapping[str, nn.Module]
) -> Recognition:
    """Asks models what they see in pictures::

        made = generate(vit, range(10))
        recognise(made.pictures, made.classes, {"resnet": resnet, "mixer": mixer}).accuracy

    That its maker gives a picture a high score says nothing: it was made for that. A model trained
    apart, better of another family, has other blind spots.

    Args:
        pictures: uint8 ``[n, channels, height, width]``, as a viewer sees them.
        classes: The class that each was made for, ``[n]``, or one for all.
        judges: Models by name, in evaluation mode, each with a ``preprocess`` that makes its input
            of pictures (those of :func:`~minivit.hub.loading.load` have one), and with the same classes
            in the same order.

    Raises:
        TypeError: No pictures in uint8.
        ValueError: There are no pictures, not a class for each, no judges, or one that cannot
            prepare pictures, does not know a class, or is in training mode.
    """
    if pictures.dtype != torch.uint8:
        raise TypeError(f"expected uint8 pictures, 0 to 255: got {pictures.dtype}")
    wanted = torch.as_tensor(classes).cpu().expand(len(pictures)) if len(pictures) else None
    if wanted is None or not judges:
        raise ValueError(f"expected pictures and judges: got {len(pictures)} and {list(judges)}")
    answers = []
    for name, judge in judges.items():
        if not hasattr(judge, "preprocess"):
            raise ValueError(f"set {name}.preprocess, which turns uint8 pictures into its input")
        refuse_training(judge, name)
        prepare: Any = judge.preprocess
        answer = logits(judge, prepare(pictures)).double().cpu()
        if wanted.min() < 0 or wanted.max() >= answer.shape[1]:
            raise ValueError(f"{name} has {answer.shape[1]} classes: got {wanted.tolist()}")
        answers.append(answer.softmax(1))
    p = torch.stack(answers)  # [judges, n, all classes]
    seen = p.argmax(2)
    probability = p.gather(2, wanted.view(1, -1, 1).expand(len(p), -1, 1))[..., 0]
    return Recognition(tuple(judges), seen, probability, seen == wanted)
