"""ViTs that find a digit among shuffled ones, and which maps of relevance find it with them."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import minivit
from studies.runner.survey import Figures
from studies.shared.training import fit
from vitlab import instruments
from vitlab.data.planted import Planted, plant_digits

VIT: dict[str, Any] = {"image_size": 16, "patch_size": 4, "dim": 64, "depth": 3}
GRID = (4, 4)  # patches of these images, four in each quarter
STEPS, PICTURES = 250, 200


def planted(seed: int) -> Figures:
    """Which maps find the quarter that decides; areas of deletion and insertion, by map."""
    model = finder(seed)
    test = plant_digits(PICTURES, part="test", seed=1, others=1)
    images, truth = as_read(test), test.patches()
    figures: Figures = {}
    for name, scores in {"truth": truth, **maps(model, images, test.labels, seed)}.items():
        curves = instruments.deletion_curves(model, images, scores, test.labels, grid=GRID)
        figures[name] = {
            "top": truth.gather(1, scores.argmax(1, keepdim=True)).mean(),
            "share": (share(scores) * truth).sum(1).mean(),
            "deletion": curves.deletion.mean(0),
            "insertion": curves.insertion.mean(0),
        }
    return figures


def two_digits(seed: int) -> Figures:
    """On images of two digits, each map's share in the quarter of each class's digit."""
    model = finder(seed)
    test = plant_digits(PICTURES, part="test", seed=1)
    labels, others = test.labels, test.labels.roll(1)
    quarters = test.patches(), test.patches().roll(1, 0)
    here, there = (F.interpolate(part.view(-1, 1, *GRID), 16) > 0 for part in quarters)
    images = torch.where(there, as_read(test).roll(1, 0), as_read(test))
    apart = (labels != others) & ~(here & there).flatten(1).any(1)
    shares: dict[str, list[Tensor]] = {}  # by map, for each class: [2, images]
    for classes, sides in ((labels, quarters), (others, quarters[::-1])):
        for name, scores in maps(model, images[apart], classes[apart], seed).items():
            both = [(share(scores) * side[apart]).sum(1) for side in sides]
            shares.setdefault(name, []).append(torch.stack(both))
    figures = {}
    for name, rows in shares.items():
        own, other = torch.cat(rows, 1)
        more = (own > other).double().mean()
        figures[name] = {"own": own.mean(), "other": other.mean(), "more": more}
    return figures


def finder(seed: int) -> Any:
    """A ViT that has learnt to find the digit, and to read it."""
    train = plant_digits(20_000, seed=10 + seed)
    torch.manual_seed(seed)
    model = minivit.create("vit_8px", **VIT)
    fit(model, as_read(train), train.labels, steps=STEPS, seed=seed, rate=3e-3)
    return model


def as_read(planted: Planted) -> Tensor:
    """Images as the models read them."""
    return (planted.images.float() / 255 - 0.3) / 0.37


def maps(model: Any, x: Tensor, labels: Tensor, seed: int) -> dict[str, Tensor]:
    """Scores of the patches of each image, [images, patches], for a class."""
    last = f"blocks.{VIT['depth'] - 1}.attention.weights"
    with torch.no_grad(), minivit.record(model, last) as activations:
        model(x)
    draws = torch.Generator().manual_seed(seed)
    return {
        "deleting": instruments.token_ablation(model, x, labels),
        "relevance": instruments.relevance(model, x, labels).patches[-1],
        "gradient": instruments.patch_means(instruments.saliency(model, x, labels), GRID),
        "rollout": instruments.rollout(model, x).patches[-1],
        "last attention": activations[last].mean((1, 2)),
        "random": torch.rand(len(x), GRID[0] * GRID[1], generator=draws),
    }


def share(scores: Tensor) -> Tensor:
    """Scores as fractions of their sum; those below zero count nothing."""
    positive = scores.clamp_min(0)
    return positive / positive.sum(1, keepdim=True).clamp_min(1e-12)
