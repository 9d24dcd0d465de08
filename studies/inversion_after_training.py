"""Does training turn a narrow patch embedding towards what images vary in?.

ViT-B/32 in miniature, 192 numbers of a patch to 48, is trained on CIFAR-10. The best linear way
back from the embedding, zeros in its null space, is measured on test images before and after. Then
trained parts go into the start of another seed's model, and gradient descent looks for images
behind the first or the last block.
"""

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

import minivit
from minivit.data import load_data
from minivit.inversion import EmbeddingInverse, invert
from minivit.networks.patches import patchify
from minivit.networks.vit import PatchEmbedding, ViT
from minivit.training import Recipe, train
from studies.inversion_in_miniature import miniature
from studies.runner.survey import NotHere, Survey
from studies.shared import inputs

SEEDS = tuple(range(5))
TRAINED = 1500  # steps
STEPS = 100  # of gradient descent
PICTURES, INVERTED = 500, 16
PARTS = {"patch_embedding": {}, "positions": {}, "norm1": {"blocks": [0]}}


def inverse(model: ViT) -> EmbeddingInverse:
    assert isinstance(model.patch_embedding, PatchEmbedding)  # for mypy
    return EmbeddingInverse(model.patch_embedding)


def decibels(images: Tensor, errors: Tensor) -> float:
    """The variance of the images over the mean square of errors."""
    size = (images - images.mean()).square().mean()
    return round(10 * math.log10(size / errors.square().mean()), 2)


def unseen(model: ViT, difference: Tensor) -> Tensor:
    """What the embedding does not see of images, in patches, ``[batch, patches, 192]``."""
    patches, seen = patchify(difference, 8).double(), inverse(model).seen.double()
    return patches - patches @ seen.mT @ seen


def descended(model: ViT, images: Tensor, block: int, steps: int) -> tuple[Tensor, Tensor]:
    """The squared errors that gradient descent leaves, seen and unseen, ``[batch]`` each."""
    found = invert(model, images, at=f"blocks.{block}", optimizer="gd", steps=steps).image
    hidden = unseen(model, found - images).square().sum((1, 2))
    return (found - images).double().square().sum((1, 2, 3)) - hidden, hidden


def with_parts(donor: ViT, host: ViT, parts: Sequence[str]) -> ViT:
    """A host with the donor's parts."""
    for part in parts:
        made = minivit.transplant(donor, host, part, **PARTS[part])
        assert isinstance(made, ViT)  # for mypy
        host = made
    return host.eval().requires_grad_(False)


def measure(row: str, rehearsal: bool) -> dict[str, Any]:
    """The way back before and after training, and what trained parts do in an untrained host."""
    seed, steps = int(row.removeprefix("seed ")), 2 if rehearsal else STEPS
    try:
        data = load_data("CIFAR10", fraction=0.002 if rehearsal else 1.0)
    except FileNotFoundError as reason:
        raise NotHere(str(reason)) from reason
    pictures = inputs.pictures("CIFAR10", PICTURES).images
    model, host = miniature(seed), miniature((seed + 1) % len(SEEDS))
    recipe = Recipe(
        steps=2 if rehearsal else TRAINED, learning_rate=3e-3, flip=True, shift=1 / 8, seed=seed
    )
    before = miniature(seed)
    accuracy = train(model, data, recipe).test.accuracy
    images = model.preprocess(pictures)
    found: dict[str, Any] = {"accuracy": accuracy}
    for name, which in (("before", before), ("after", model)):
        found[name] = decibels(images, unseen(which, images))
    inverted = images[:: PICTURES // INVERTED][:INVERTED]
    logs = {}
    for parts in ((), ("positions",), ("patch_embedding",), ("patch_embedding", "norm1")):
        grafted = with_parts(model, host, parts)
        seen, _ = descended(grafted, inverted, 0, steps)
        logs[parts] = 10 * seen.log10().mean().item()
    found["positions"] = round(logs[()] - logs["positions",], 3)
    both = logs["patch_embedding", "norm1"]
    found["norm beside embedding"] = round(logs["patch_embedding",] - both, 3)
    seen, hidden = descended(with_parts(model, host, ["patch_embedding"]), inverted, 5, steps)
    found["share of embedding"] = round((hidden / (seen + hidden)).mean().item(), 3)
    return found


STUDY = Survey("inversion_after_training", [f"seed {seed}" for seed in SEEDS], measure, SEEDS)
