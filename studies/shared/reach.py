"""Small ViTs on digits whose attention sees more or less of the image, or the same in every one."""

from typing import Any

import torch
from torch import Tensor, nn

import minivit
from minivit.model import Model
from minivit.parts import window_mask
from minivit.vit import ViT

GRID = (8, 8)  # of patches, each of which is one pixel
SIZES: dict[str, Any] = {"patch_size": 1, "dim": 32, "depth": 4, "heads": 4}
WINDOW = 4
MIXING = (
    "global", "3 x 3", "5 x 5", "windows", "shifted windows", "static", "static with 1 head"
)  # fmt: skip


class StaticMixing(nn.Module):
    """Attention without queries and keys: each head's scores are learned, the same for all images.

    Where a mask is false, a patch is given no weight, as in attention.
    """

    def __init__(self, patches: int, dim: int, heads: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(heads, patches, patches))
        self.values, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = self.scores if mask is None else self.scores.masked_fill(~mask, -torch.inf)
        v = self.values(x).unflatten(-1, (len(scores), -1)).transpose(1, 2)  # [batch, head, n, d]
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Limited(nn.Module):
    """Attention that keeps to a mask of its own, as every other block of a Swin does."""

    def __init__(self, attention: nn.Module, mask: Tensor) -> None:
        super().__init__()
        self.attention = attention
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.attention(x, self.mask)


def vit(mixing: str) -> Model:
    """An untrained ViT, from torch's random numbers."""
    limits: dict[str, Any] = {"local": {"3 x 3": 3, "5 x 5": 5}.get(mixing)}
    if "windows" in mixing:
        limits = {"window": WINDOW}
    model = minivit.create("vit_8px", **SIZES, **limits)
    assert isinstance(model, ViT)
    blocks: Any = model.blocks
    for i, block in enumerate(blocks):
        if mixing.startswith("static"):
            heads = 1 if mixing.endswith("1 head") else SIZES["heads"]
            block.attention = StaticMixing(GRID[0] * GRID[1], SIZES["dim"], heads)
        elif mixing == "shifted windows" and i % 2:
            shifted = window_mask(GRID, WINDOW, shift=WINDOW // 2)
            block.attention = Limited(block.attention, shifted)
    return model
