"""Convolution and attention in one network: stages of blocks of each kind.

The ResNet followed by a ViT is that of Dosovitskiy et al. (2021); stages of tokens with pooling
between them are those of Heo et al. (2021), "Rethinking Spatial Dimensions of Vision Transformers"
(PiT); attention at the ends of a ResNet's stages is that of Park & Kim (2022), "How Do Vision
Transformers Work?" (AlterNet).
"""

import re
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

import torch.nn.functional as F
from einops import rearrange
from torch import nn

from minivit.model import Config, Model, check_images, check_rule
from minivit.parts import window_mask
from minivit.patches import grid_of, pair
from minivit.resnet import BasicBlock, ResidualBlock, Stem, convolution
from minivit.shapes import Grid, Images, Logits, Maps, Mask, NewMaps, Size, Tokens
from minivit.variants import positions_of
from minivit.vit import NORM_EPS, Block, MultiHeadAttention, PatchEmbedding


def to_tokens(x: Maps) -> Tokens:
    """A map's positions as tokens, in reading order."""
    return rearrange(x, "b d r c -> b (r c) d")


def to_map(tokens: Tokens, rows: int) -> Maps:
    """The inverse of :func:`to_tokens`."""
    return rearrange(tokens, "b (r c) d -> b d r c", r=rows)


class AttentionBlock(ResidualBlock):
    """A basic block with attention in place of its second convolution, after Park and Kim (2022).

    ``relu(shortcut(x) + norm(attention(relu(norm(conv(x))))))``; the convolution is 1 x 1. The
    authors put norm and activation before the convolution, add learned relative positions to the
    scores, and make heads 64 wide in all stages. Here heads share the width, and attention knows of
    positions only from the padding of earlier convolutions.
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


def alternate(blocks: tuple[int, ...], attention: tuple[int, ...]) -> tuple[str, ...]:
    """AlterNet's first rule: from the end of a stage on, every other block is attention.

    Of ``(4, 4)`` blocks with ``(0, 2)`` of attention it makes the stages ``("cccc", "caca")``.
    """
    pairs = list(zip(blocks, attention, strict=False))
    if len(blocks) != len(attention) or not all(0 <= 2 * k <= n for n, k in pairs):
        raise ValueError(f"expected at most every other block: got {attention} of {blocks}")
    return tuple("c" * (n - 2 * k) + "ca" * k for n, k in pairs)


@dataclass(frozen=True)
class HybridConfig(Config):
    """The sizes and choices of a hybrid. The defaults make a small AlterNet.

    A stage is a string with a letter for each block: ``c`` for :class:`~minivit.resnet.BasicBlock`,
    ``a`` for :class:`AttentionBlock`, ``t`` for :class:`TokenBlock`. Stages of ``t`` have no others
    and come last. After the first stage, those of ``c`` and ``a`` halve height and width in their
    first block, and those of ``t`` by a depth-wise 3 x 3 convolution before it, as in PiT; but
    before the first of ``t`` after ``c`` and ``a`` stands a 1 x 1 convolution, a patch embedding.
    """

    image_size: Size = 32
    channels: int = 3
    classes: int = 10
    stem: Literal["3x3", "7x7", "patch"] = "3x3"
    patch_size: Size | None = None  # of the patch stem
    stages: tuple[str, ...] = ("cc", "ca", "ca")
    widths: tuple[int, ...] = (32, 64, 128)
    heads: tuple[int, ...] = (2, 4, 8)  # in each stage
    mlp_ratio: float = 2  # in stages of t
    positions: Literal["none", "learned", "sincos1d", "sincos2d"] = "learned"
    window: int | None = None  # side of the windows that a keeps to; AlterNet has 7

    def __post_init__(self) -> None:
        super().__post_init__()
        for stage in self.stages:
            fits = re.fullmatch("[ca]+|t+", stage) is not None
            check_rule(self, fits, "each of stages is a string of c and a, or of t alone")
        tokens = ["t" in stage for stage in self.stages]
        check_rule(self, tokens == sorted(tokens), "stages of t come after all others")
        patches = self.stem == "patch"
        check_rule(self, patches == bool(self.patch_size), "a stem of patch has a patch_size")
        attends = "a" in "".join(self.stages)
        check_rule(self, attends or not self.window, "a window is what an a in stages keeps to")
        lengths = {len(self.stages), len(self.widths), len(self.heads)}
        check_rule(self, len(lengths) == 1, "stages, widths and heads must be equally many")
        check_rule(self, self.hidden(min(self.widths)) >= 1, "mlp_ratio must leave the MLP a width")
        for entry, (before, width) in zip(self.entries[1:], pairwise(self.widths), strict=True):
            fits = entry != "pool" or width % before == 0
            check_rule(self, fits, "one of widths after pooling is a multiple of that before it")
        for stage, width, heads in zip(self.stages, self.widths, self.heads, strict=True):
            fits = width % heads == 0 or not stage.strip("c")
            check_rule(self, fits, "heads must divide widths where a stage attends")
        if self.patch_size is not None:
            grid_of(self.image_size, self.patch_size)

    @property
    def entries(self) -> list[str]:
        """Says of each stage whether a stem, a stride, a pool or an embedding leads into it."""
        entries = ["stem"]
        for before, stage in pairwise(self.stages):
            if "t" not in stage:
                entries.append("stride")
            else:
                entries.append("pool" if "t" in before else "embedding")
        return entries

    @property
    def grids(self) -> list[Grid]:
        """Rows and columns of the map in each stage, for images of ``image_size``."""
        rows, columns = pair(self.image_size)
        if self.patch_size is not None:
            rows, columns = grid_of(self.image_size, self.patch_size)
        halvings = 2 if self.stem == "7x7" else 0
        grids = []
        for entry in self.entries:
            halvings += entry in ("stride", "pool")
            # Halved and rounded up, again and again.
            grids.append((-(-rows // 2**halvings), -(-columns // 2**halvings)))
        return grids

    def hidden(self, width: int) -> int:
        """Width of an MLP's hidden layer in a stage of this width."""
        return round(width * self.mlp_ratio)


class Hybrid(Model):
    """A stem, blocks in stages, the mean over all positions, a linear head.

    With ``c`` alone, and widths that double, it is a :class:`~minivit.resnet.ResNet`.
    After a last stage of ``t`` a LayerNorm stands before the mean, as in a ViT; there is no class
    token.
    """

    config: HybridConfig

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        self.config = c = config
        channels = c.widths[0]
        self.stem: nn.Module
        if c.patch_size is None:
            self.stem = Stem(c.stem, c.channels, channels)
        else:
            self.stem = PatchEmbedding(c.patch_size, channels, c.channels)
        self.transitions = nn.ModuleList()  # one before each stage
        self.blocks = nn.ModuleList()  # of all stages in a row
        for i, (entry, stage, width) in enumerate(zip(c.entries, c.stages, c.widths, strict=True)):
            transition: nn.Module = nn.Identity()
            if entry == "pool":
                transition = nn.Conv2d(channels, width, 3, 2, padding=1, groups=channels)
            elif entry == "embedding":
                transition = nn.Conv2d(channels, width, 1)
            self.transitions.append(transition)
            if "t" in stage and entry != "pool":
                self.positions = positions_of(c.positions, c.grids[i], width, class_token=False)
            stride = 2 if entry == "stride" else 1
            for kind in stage:
                self.blocks.append(self._block(kind, i, channels, stride))
                channels, stride = width, 1
        self.norm = nn.LayerNorm(channels, NORM_EPS) if "t" in c.stages[-1] else nn.Identity()
        self.head = nn.Linear(channels, c.classes)

    def _block(self, kind: str, stage: int, channels: int, stride: int) -> nn.Module:
        c = self.config
        width, heads = c.widths[stage], c.heads[stage]
        if kind == "c":
            return BasicBlock(channels, width, stride)
        if kind == "a":
            return AttentionBlock(channels, width, stride, heads, c.window)
        return TokenBlock(width, heads, c.hidden(width))

    def forward(self, images: Images) -> Logits:
        tokens = to_tokens(self.features(images))
        return self.head(self.norm(tokens).mean(1))

    def features(self, images: Images) -> Maps:
        """The last block's map, before norm and mean."""
        c = self.config
        check_images(images, self)
        x = self.stem(images)
        if c.patch_size is not None:
            rows, _ = grid_of((images.shape[2], images.shape[3]), c.patch_size)
            x = to_map(x, rows)
        blocks = iter(self.blocks)
        for entry, stage, transition in zip(c.entries, c.stages, self.transitions, strict=True):
            x = transition(x)
            if "t" in stage and entry != "pool":
                rows, columns = x.shape[2:]
                x = to_map(self.positions(to_tokens(x), (rows, columns)), rows)
            for block in islice(blocks, len(stage)):
                x = block(x)
        return x
