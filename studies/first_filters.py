"""What does training do to the first filters of small models?

Chapter 8 trains a few of these models live: they tell from which of ten photographs a grey crop was
cut. Here are sixteen of each kind, in float64 on one thread, so that what is found over seeds does
not hang on rounding. ViTs begin with longer filters than ResNets do; ``narrow ViT, begun short``
has them scaled to the ResNets' first norm.
"""

import copy
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import minivit
from minivit.analysis import (
    filter_spectra,
    first_filters,
    principal_components,
    subspace_overlap,
)
from minivit.data.photographs import PHOTOGRAPHS, crops
from minivit.networks.model import Model
from studies.runner.survey import Survey

SEEDS, STEPS = range(16), 200
VIT = {"image_size": 28, "patch_size": 7, "channels": 1, "depth": 1}
RESNET = {"image_size": 28, "channels": 1, "stem": "7x7", "stages": (1,), "width": 16}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "narrow ViT": ("vit_32px", VIT | {"dim": 12, "heads": 3}),
    "wide ViT": ("vit_32px", VIT | {"dim": 64, "heads": 4}),
    "ResNet": ("resnet_32px", RESNET),
}
SHORT = "narrow ViT, begun short"
OVERLAPS = "overlaps"
K = 6  # components


@cache
def grey_crops(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Crops of photographs, ``[n, 1, 28, 28]``, and of which, ``[n]``."""
    names = tuple(PHOTOGRAPHS)
    pictures, of = crops(n, 28, seed=seed, names=names)
    grey = pictures.double().mean(1, keepdim=True) / 255
    return (grey - 0.45) / 0.25, torch.tensor([names.index(name) for name in of])


@cache
def pair(kind: str, seed: int, steps: int) -> tuple[Model, Model]:
    """A model before and after training."""
    torch.manual_seed(seed)
    name, changes = KINDS["narrow ViT" if kind == SHORT else kind]
    model = minivit.create(name, **changes).double()
    if kind == SHORT:
        factor = length(pair("ResNet", seed, 0)[0]) / length(model)
        dict(model.named_parameters())["patch_embedding.projection.weight"].data *= factor
    before, (images, labels) = copy.deepcopy(model), grey_crops(3000, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05, fused=True)
    draws = torch.Generator().manual_seed(seed)
    if steps:
        rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, steps, pct_start=0.2)
    for _ in range(steps):
        batch = torch.randint(len(images), (64,), generator=draws)
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()
    return before.eval(), model.eval()


def length(model: Model) -> float:
    """The mean norm of a model's first filters."""
    return first_filters(model).flatten(1).norm(dim=1).mean().item()


def measure(row: str, rehearsal: bool) -> dict[str, Any]:
    """One list over the seeds for each figure."""
    seeds, steps = (SEEDS[:2], 2) if rehearsal else (SEEDS, STEPS)
    if row == OVERLAPS:
        return overlaps(seeds, steps)
    found = [changed(*pair(row, seed, steps)) for seed in seeds]
    return {name: [one[name] for one in found] for name in found[0]}


@torch.no_grad()
def changed(before: Model, after: Model) -> dict[str, float | None]:
    """What training did to the first filters of one model; lengths and turns are means."""
    images, labels = grey_crops(500, seed=1)
    old, new = first_filters(before).flatten(1), first_filters(after).flatten(1)
    has = filter_spectra(first_filters(after)).structured()
    cosine = F.cosine_similarity(old, new)
    grown = new.norm(dim=1) / old.norm(dim=1)
    both = 0 < has.sum() < len(has)
    return {
        "right": (after(images).argmax(1) == labels).double().mean().item(),
        "pattern_before": filter_spectra(first_filters(before)).structured().double().mean().item(),
        "pattern": has.double().mean().item(),
        "cosine": cosine.mean().item(),
        "moved": (new - old).norm(dim=1).mean().item(),
        "length_before": length(before),
        "length": length(after),
        # filters with a pattern less those without, where there are both
        "cosine_apart": (cosine[has].mean() - cosine[~has].mean()).item() if both else None,
        "grown_without": grown[~has].mean().item() if both else None,
    }


def overlaps(seeds: Sequence[int], steps: int) -> dict[str, list[float]]:
    """How much of the leading components lies in those of the ResNets of the other seeds."""
    spans = {
        kind: [leading(pair(kind, seed, steps)[1]) for seed in seeds] for kind in (*KINDS, SHORT)
    }
    return {
        kind: [
            sum(subspace_overlap(mine, theirs).item() for theirs in others) / len(others)
            for seed, mine in enumerate(spans[kind])
            for others in [spans["ResNet"][:seed] + spans["ResNet"][seed + 1 :]]
        ]
        for kind in spans
    }


def leading(model: Model) -> Tensor:
    """The leading principal components of the first filters: ``[K, 1, 7, 7]``."""
    return principal_components(first_filters(model)).pictures[:K]


STUDY = Survey("first_filters", [*KINDS, SHORT, OVERLAPS], measure, list(SEEDS))
