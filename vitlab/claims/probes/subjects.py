"""What probes share of their subjects: second models, labels, groups of images, baselines."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool, Int64
from torch import Tensor, nn

from vitlab.calls import logits
from vitlab.claims.probe import CannotAsk, Measured, Subject
from vitlab.claims.refusal import refusal
from vitlab.instruments.running import batches, evaluating

GROUPS = 4  # of images, for intervals of figures that no single image has
LEAST = 4  # images in a group


def groups(images: Tensor) -> list[Tensor]:
    """Images in four groups, or in one where there are too few for four."""
    return list(images.chunk(GROUPS)) if len(images) >= GROUPS * LEAST else [images]


def weighted(parts: list[Tensor], some: list[Tensor]) -> Tensor:
    """The mean over all images of what is a mean over the images of each group."""
    return sum(
        (
            part * (len(group) / sum(map(len, some)))
            for part, group in zip(parts, some, strict=True)
        ),
        torch.zeros(()),
    )


def spread(figures: list[float]) -> Tensor | None:
    """The figures of the groups, where there is more than one."""
    return torch.tensor(figures) if len(figures) > 1 else None


def before_training(
    subject: Subject, measure: Callable[[Subject], float], images: int = 16
) -> dict[str, float]:
    """The figure of the model before training, on a few of the images, where it can be made."""
    if subject.untrained is None:
        return {}
    twin, few = subject.untrained().eval(), subject.images[:images]
    labels = None if subject.labels is None else subject.labels[:images]
    subject = replace(subject, model=twin, images=few, labels=labels, untrained=None)
    try:
        found = measure(subject)
    except Exception as error:
        if refusal(error) is None:
            raise
        return {}  # as for positions that begin as zeros
    return {"untrained": found} if math.isfinite(found) else {}


def figure_of(measure: Callable[[Subject], Measured]) -> Callable[[Subject], float]:
    """The figure alone of what a probe measures."""
    return lambda subject: measure(subject).figure


def second(subject: Subject) -> nn.Module:
    """The other model, for a claim that compares two."""
    if subject.beside is None:
        raise CannotAsk("needs a second model: --beside NAME")
    return subject.beside


def labels_of(subject: Subject) -> Int64[Tensor, "images"]:
    """The class of each image."""
    if subject.labels is None:
        raise CannotAsk("needs the class of each image: give a folder of images for each class")
    if len(subject.labels) != len(subject.images):
        raise ValueError(f"{len(subject.labels)} labels for {len(subject.images)} images")
    return subject.labels.cpu()


def right(
    model: nn.Module, images: Tensor, labels: Tensor, batch_size: int
) -> Bool[Tensor, "images"]:
    """Of which images a classifier is right."""
    with evaluating(model):
        answers = [logits(model, batch).argmax(1).cpu() for batch in images.split(batch_size)]
    return torch.cat(answers) == labels


def beyond_chance(model: nn.Module, subject: Subject) -> tuple[float, float]:
    """Accuracy, and that of a guess, of a model that is right more often than by chance.

    By three standard errors: else there is no accuracy to lose, or to keep.
    """
    labels, n = labels_of(subject), len(subject.images)
    first, _ = batches(subject.images, 1)
    with evaluating(model):
        chance = 1 / logits(model, first).shape[1]
    accuracy = right(model, subject.images, labels, subject.batch_size).double().mean().item()
    if accuracy <= chance + 3 * (chance * (1 - chance) / n) ** 0.5:
        raise CannotAsk(f"{type(model).__name__} is right no more often than by chance")
    return accuracy, chance
