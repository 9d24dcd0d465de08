"""Small data and small models, for tests of training."""

import torch

import minivit
from vitlab.data.dataset import Data, Split

TINY = {"dim": 8, "depth": 2, "heads": 2, "classes": 2}


def bright_or_dark(n=64, channels=1, side=8):
    """Two classes that any classifier tells apart: noise below and above the middle."""
    g = torch.Generator().manual_seed(0)
    parts = []
    for size in (n, 16, 20):
        labels = torch.arange(size) % 2
        noise = torch.randint(0, 160, (size, channels, side, side), generator=g)
        parts.append(Split((noise + 90 * labels.view(-1, 1, 1, 1)).to(torch.uint8), labels))
    mean, std = (0.5,) * channels, (0.25,) * channels
    return Data("noise", ("dark", "bright"), *parts, mean=mean, std=std, licence="CC0")


def tiny(**changes):
    torch.manual_seed(0)
    return minivit.create("vit_8px", **TINY | changes)
