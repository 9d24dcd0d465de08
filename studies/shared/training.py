"""Short trainings of small models, and how well they do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minivit.model import Model
from minivit.preprocessing import Preprocess
from vitlab.data import Data
from vitlab.training import Recipe, train
from vitlab.training.augment import shift_and_flip


def fitted(
    create: Callable[[], Model], data: Data, recipe: Recipe, seed: int, **how: Any
) -> tuple[Model, float]:
    """A model trained from the seed's first weights, and its accuracy on the test part."""
    torch.manual_seed(seed)
    model = create()
    return model, train(model, data, replace(recipe, seed=seed), **how).test.accuracy


def normalised(images: Tensor, like: Data | Preprocess) -> Tensor:
    """Images with black 0 and white 1 as models read them, by the mean and standard deviation."""
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (like.mean, like.std))
    return (images - mean) / std


def optimise(
    model: nn.Module,
    loss: Callable[[], Tensor],
    steps: int,
    rate: float,
    *,
    warm_up: float = 0.1,
    weight_decay: float = 0.05,
    clip: float = 1.0,
    fused: bool = False,
) -> None:
    """AdamW on a loss, a new one at every step; the rate warms up and falls to zero."""
    weights = model.parameters()
    optimiser = torch.optim.AdamW(weights, rate, weight_decay=weight_decay, fused=fused or None)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps, pct_start=warm_up)
    model.train()
    for _ in range(steps):
        value = loss()
        optimiser.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimiser.step()
        schedule.step()
    model.eval()


def fit(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    steps: int,
    seed: int,
    rate: float = 5e-3,
    shift: float = 0.0,
    watch: Callable[[Tensor], None] = lambda loss: None,
    **how: Any,
) -> None:
    """Trains a classifier, of images or of their patches, on batches of 64, shifted at random.

    ``watch`` gets the loss of each step before it is made.
    """
    draws = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        batch = torch.randint(len(images), (64,), generator=draws)
        x = shift_and_flip(images[batch], shift, False, draws) if shift else images[batch]
        value = F.cross_entropy(model(x), targets[batch])
        watch(value)
        return value

    optimise(model, loss, steps, rate, **{"warm_up": 0.15} | how)


@torch.no_grad()
def outputs(model: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    return torch.cat([model(part) for part in images.split(250)])


def features(model: Model, images: Tensor) -> np.ndarray:
    """The inputs of the head, ``[n, dim]``, for images as the model reads them."""
    head, model.head = model.head, nn.Identity()
    try:
        return outputs(model.eval(), images).numpy()
    finally:
        model.head = head


def accuracy(model: Callable[[Tensor], Tensor], images: Tensor, labels: Tensor) -> float:
    """The fraction of the images, or of their patches, of which a model is right."""
    return (outputs(model, images).argmax(1) == labels).double().mean().item()
