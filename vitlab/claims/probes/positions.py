"""What a model has learned about positions, and whether it copes with others."""

import copy
import inspect
import re
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitlab.claims.probe import CannotAsk, Measured, Subject, probe
from vitlab.claims.probes.subjects import before_training, beyond_chance, labels_of, right
from vitlab.instruments import position_similarity, position_table
from vitlab.instruments.running import evaluating


def learned_table(model: nn.Module) -> Float[Tensor, "rows columns dim"]:
    """The model's learned position embeddings on their grid."""
    if not any(re.search("pos(?!t)", name.lower()) for name, _ in model.named_parameters()):
        raise CannotAsk(f"{type(model).__name__} has no learned position embeddings")
    return position_table(model)


def near_and_far(table: Float[Tensor, "rows columns dim"]) -> tuple[float, float]:
    """Mean cosine of adjacent places, and of all that are further apart."""
    rows, columns = table.shape[:2]
    flat = position_similarity(table).cosines.flatten(2).flatten(0, 1)
    place = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    steps = (place[:, None] - place).abs().sum(-1)  # [places, places]
    return flat[steps == 1].mean().item(), flat[steps > 1].mean().item()


@probe(
    "V28",
    "How much more alike are this model's position embeddings of adjacent patches than of others?",
)
def neighbours(subject: Subject) -> Measured:
    """Mean cosine of adjacent places, less that of places further apart; no image is needed."""

    def lead(table: Tensor) -> float:
        near, far = near_and_far(table)
        return near - far

    table = learned_table(subject.model)
    places = table.flatten(0, 1)
    order = torch.randperm(len(places), generator=torch.Generator().manual_seed(0))
    shuffled = places[order].view_as(table)
    baselines = before_training(subject, lambda s: lead(learned_table(s.model)))
    return Measured(lead(table), baselines={"places shuffled": lead(shuffled)} | baselines)


@probe(
    "V16",
    "What fraction of its accuracy does this model keep when the same images are enlarged one "
    "and a half times?",
    needs=(labels_of,),
)
def larger_images(subject: Subject) -> Measured:
    """Accuracy with its positions resampled and nothing else changed, over that at its size."""
    labels = labels_of(subject)
    learned_table(subject.model)
    size = (subject.images.shape[2] * 3 // 2, subject.images.shape[3] * 3 // 2)
    images = F.interpolate(subject.images, size, mode="bilinear", antialias=True)
    model = resampled(subject.model, size)
    with evaluating(model):
        model(images[:1])  # refuses the size before the work begins
    whole, _ = beyond_chance(subject.model, subject)
    larger = right(model, images, labels, subject.batch_size).double().mean().item()
    return Measured(larger / whole)


def resampled(model: nn.Module, size: tuple[int, int]) -> nn.Module:
    """The model for images of another size: itself, or a copy with its positions resampled."""
    hugging_face = "interpolate_pos_encoding" in inspect.signature(model.forward).parameters
    if not hugging_face and not hasattr(model, "set_input_size"):
        return model
    other: Any = copy.deepcopy(model)
    if hugging_face:
        other.forward = partial(other.forward, interpolate_pos_encoding=True)
    else:
        other.set_input_size(img_size=size)  # timm's
    return other
