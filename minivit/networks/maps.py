"""Attention on feature maps: every position of a map is a token."""

import torch.nn.functional as F
from einops import rearrange
from torch import nn

from minivit.networks.masks import window_mask
from minivit.networks.residual import ResidualBlock, convolution
from minivit.networks.shapes import Maps, Mask, NewMaps, Tokens
from minivit.networks.vit import Block, MultiHeadAttention


def to_tokens(x: Maps) -> Tokens:
    """A map's positions as tokens, in reading order."""
    return rearrange(x, "b d r c -> b (r c) d")


def to_map(tokens: Tokens, rows: int) -> Maps:
    """The inverse of :func:`to_tokens`."""
    return rearrange(tokens, "b (r c) d -> b d r c", r=rows)


class AttentionBlock(ResidualBlock):
    """A basic block with attention in place of its second convolution, after Park and Kim (2022).

    ``relu(shortcut(x) + norm(attention(relu(norm(conv(x))))))``; the convolution is 1 x 1. It takes
    the place of a :class:`~minivit.networks.residual.BasicBlock` while all around it stays, so that
    the two can be compared. AlterNet's authors put norm and activation before the convolution, add
    learned relative positions to the scores, and make heads 64 wide in all stages. Here heads share
    the width, and attention knows of positions only from the padding of earlier convolutions.
    """

    def __init__(
        self, channels: int, width: int, stride: int, heads: int, window: int | None = None
    ) -> None:
        super().__init__(channels, width, stride)
        self.window = window
        self.conv = convolution(channels, width, 1, stride, "batch")
        self.norm1 = nn.BatchNorm2d(width)
        self.attention = MultiHeadAttention(width, heads)
        self.norm2 = nn.BatchNorm2d(width)

    def branch(self, x: Maps) -> NewMaps:
        x = F.relu(self.norm1(self.conv(x)))
        rows, columns = x.shape[2:]
        mask = None
        if self.window is not None:
            mask = window_mask((rows, columns), self.window).to(x.device)
        return self.norm2(to_map(self.attention(to_tokens(x), mask), rows))


class TokenBlock(Block):
    """An encoder block on a map, each position of which is a token."""

    def forward(self, x: Maps, mask: Mask | None = None) -> Maps:  # type: ignore[override]
        return to_map(super().forward(to_tokens(x), mask), x.shape[2])
