"""Branches left out at random in training: Huang et al. (2016), "Stochastic Depth"."""

from typing import Any

import torch
from torch import Tensor, nn

BRANCHES = ("attention", "mixing", "mlp")  # of a block: what it adds to the residual stream


class StochasticDepth:
    """A forward hook that makes a branch zero for some images of the batch, in training alone.

    What is kept is divided by its probability, so that the expected output is unchanged.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, branch: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        if not branch.training:
            return output
        kept = torch.rand(len(output), 1, 1, device=output.device) >= self.rate  # [batch, 1, 1]
        return output * kept / (1 - self.rate)


def add_stochastic_depth(blocks: nn.ModuleList, last: float) -> None:
    """Gives the blocks' branches rates that grow linearly from 0 in the first to ``last``."""
    for i, block in enumerate(blocks):
        rate = last * i / max(len(blocks) - 1, 1)
        for name in BRANCHES:
            if rate and hasattr(block, name):
                getattr(block, name).register_forward_hook(StochasticDepth(rate))
