"""Short trainings of small models, and how well they do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minivit.model import Model
from vitlab.data import Data
from vitlab.training import Recipe, train


def trained(
    create: Callable[[], Model], data: Data, recipe: Recipe, seed: int, **how: Any
) -> tuple[Model, float]:
    """A model trained from the seed's first weights, and its accuracy on the test part."""
    torch.manual_seed(seed)
    model = create()
    return model, train(model, data, replace(recipe, seed=seed), **how).test.accuracy


def optimise(
    model: nn.Module,
    loss: Callable[[], Tensor],
    steps: int,
    rate: float,
    *,
    warm_up: float = 0.1,
    weight_decay: float = 0.05,
) -> None:
    """AdamW on a loss, a new one at every step; the rate warms up and falls to zero."""
    optimiser = torch.optim.AdamW(model.parameters(), rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, rate, total_steps=steps, pct_start=warm_up
    )
    model.train()
    for _ in range(steps):
        value = loss()
        optimiser.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()


def fit(
    model: nn.Module, images: Tensor, targets: Tensor, *, steps: int, seed: int, rate: float = 5e-3
) -> None:
    """Trains a classifier, of images or of their patches, on batches of 64."""
    draws = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        batch = torch.randint(len(images), (64,), generator=draws)
        return F.cross_entropy(model(images[batch]), targets[batch])

    optimise(model, loss, steps, rate, warm_up=0.15)


@torch.no_grad()
def outputs(model: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    return torch.cat([model(part) for part in images.split(250)])


def accuracy(model: Callable[[Tensor], Tensor], images: Tensor, labels: Tensor) -> float:
    """The fraction of the images, or of their patches, of which a model is right."""
    return (outputs(model, images).argmax(1) == labels).double().mean().item()
