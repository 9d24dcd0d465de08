"""AdamW, the learning rate's schedule, the moving average of the weights."""

import copy
import math

import torch
from torch import nn

from minivit.model import Model
from vitlab.training.recipe import Recipe


def adamw(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019), which decays the weights of linear maps and convolutions.

    Norms, biases, positions, class tokens and all other parameters do not decay: there is no reason
    to pull them towards zero.
    """
    maps = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    decaying = {id(m.weight) for m in model.modules() if isinstance(m, maps)}
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if id(p) in decaying], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if id(p) not in decaying], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], recipe.learning_rate, fused=True)


def schedule(step: int, steps: int, warmup: float) -> float:
    """The learning rate at a step, counted from 0, as a fraction of its peak.

    It grows linearly over the fraction ``warmup`` of the steps, the first of which is not at zero,
    and then falls along a cosine to zero.
    """
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    return (1 + math.cos(math.pi * (step - rising) / (steps - rising))) / 2


class Average:
    """The exponential moving average of a model's weights, and of its norms' statistics.

    The decay is ``min(decay, (1 + step) / (10 + step))``, so that the first weights, which are
    random, are soon forgotten. With ``decay`` 0 it is the last weights.
    """

    def __init__(self, model: Model, decay: float) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: Model, step: int) -> None:
        """Adds the weights after a step, counted from 0."""
        decay = min(self.decay, (1 + step) / (10 + step))
        new = model.state_dict()
        for key, mean in self.model.state_dict().items():
            if mean.is_floating_point():
                mean.lerp_(new[key], 1 - decay)
            else:  # a norm's count of batches
                mean.copy_(new[key])
