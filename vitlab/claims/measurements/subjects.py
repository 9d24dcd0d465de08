"""What measurements share of their subjects: second models, labels, accuracy, groups of images."""

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from vitlab.calls import logits
from vitlab.claims.measuring import NotApplicable, Subject, require
from vitlab.instruments.running import evaluating

GROUPS = 4  # of images, for intervals of figures that no single image has
LEAST = 4  # images in a group


def groups(images: Tensor) -> list[Tensor]:
    """Images in four groups, or in one where there are too few for four."""
    return list(images.chunk(GROUPS)) if len(images) >= GROUPS * LEAST else [images]


def with_mean(parts: list[Tensor], images: list[Tensor]) -> list[Tensor]:
    """The mean over all images of what is a mean over each group, and then that of each group."""
    count = sum(map(len, images))
    shares = (part * (len(x) / count) for part, x in zip(parts, images, strict=True))
    return [sum(shares, torch.zeros(())), *parts]


def second(subject: Subject) -> nn.Module:
    """The other model, for a claim that compares two."""
    if subject.beside is None:
        raise NotApplicable("needs a second model: --beside NAME")
    return subject.beside


def labels_of(subject: Subject) -> Int64[Tensor, "images"]:
    """The class of each image."""
    if subject.labels is None:
        raise NotApplicable("needs the class of each image: give a folder of images for each class")
    return subject.labels.cpu()


def accuracy(model: nn.Module, subject: Subject, images: Tensor) -> float:
    """The fraction of images, changed ones of the subject, of which a classifier is right."""
    with evaluating(model):
        batches = images.split(subject.batch_size)
        answers = torch.cat([logits(model, batch).argmax(1).cpu() for batch in batches])
    return (answers == labels_of(subject)).double().mean().item()


def beyond_chance(model: nn.Module, subject: Subject) -> tuple[float, float]:
    """Accuracy, and that of a guess, of a model that is right more often than by chance."""
    with evaluating(model):
        chance = 1 / logits(model, subject.images[:1]).shape[1]
    right = accuracy(model, subject, subject.images)
    knows = right > chance + 3 * (chance * (1 - chance) / len(subject.images)) ** 0.5
    require(knows, f"{type(model).__name__} is right no more often than by chance")
    return right, chance
