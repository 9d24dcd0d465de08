"""Whether patches stand out, what a model knows about positions, and whether others will do."""

import copy
import inspect
import re
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitlab.claims.measuring import Measured, Subject, measures, require, why_not
from vitlab.instruments import position_similarity, position_table, token_norms

LARGE = 100_000_000  # weights: more than the size Base has


@measures("T02", untrained=True)
def largest_norm(subject: Subject) -> Measured:
    """Largest norm of a patch over the median of its block, in the block where it is largest."""
    found = token_norms(subject.model, subject.images, batch_size=subject.batch_size)
    curves = {"largest norm over the median": found.largest}
    curves[f"patches above {found.factor} medians"] = found.fraction
    return Measured(found.largest.max().item(), curves=curves)


@measures("T01", untrained=True)
def largest_norm_of_small(subject: Subject) -> Measured:
    """The same of a model that is no larger than the size Base."""
    weights = sum(p.numel() for p in subject.model.parameters())
    asked = "this is asked of up to 100 million, and T02 of any"
    require(weights <= LARGE, f"has {weights / 1e6:.0f} million weights: {asked}")
    return largest_norm(subject)


def learned_table(model: nn.Module) -> Float[Tensor, "rows columns dim"]:
    """The model's learned position embeddings on their grid."""
    learned = any(re.search("pos(?!t)", name.lower()) for name, _ in model.named_parameters())
    require(learned, f"{type(model).__name__} has no learned position embeddings")
    return position_table(model)


def leads(table: Float[Tensor, "rows columns dim"]) -> Float[Tensor, "pairs"]:
    """Cosine of each pair of adjacent places, less the mean of all that are further apart."""
    rows, columns = table.shape[:2]
    flat = position_similarity(table).flatten(2).flatten(0, 1)
    place = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    steps = (place[:, None] - place).abs().sum(-1).triu()  # [places, places]
    return flat[steps == 1] - flat[steps > 1].mean()


@measures("V28", untrained=True)
def neighbours(subject: Subject) -> Measured:
    """Mean cosine of the position embeddings of adjacent patches, less that of others."""
    table = learned_table(subject.model)
    places = table.flatten(0, 1)
    order = torch.randperm(len(places), generator=torch.Generator().manual_seed(0))
    each, shuffled = leads(table), leads(places[order].view_as(table)).mean().item()
    return Measured(each.mean().item(), each, {"places shuffled": shuffled})


@measures("V16")
def larger_images(subject: Subject) -> Measured:
    """Accuracy on images enlarged by half, with positions resampled, over that at their size."""
    subject.classes(), learned_table(subject.model)  # before the model runs
    size = (subject.images.shape[2] * 3 // 2, subject.images.shape[3] * 3 // 2)
    images = F.interpolate(subject.images, size, mode="bilinear", antialias=True)
    model = resampled(subject.model, size)
    why = why_not(model, images[:1])
    require(not why, f"does not run on images of {size}: {why}")
    whole, _ = subject.beyond_chance(subject.model)
    return Measured(subject.accuracy(model, images) / whole)


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
