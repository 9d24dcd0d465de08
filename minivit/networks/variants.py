"""Variants of the vision transformer: each is a class that takes the place of a plain part.

``hub/zoo.py`` creates them by the fields of :class:`ViTVariantConfig`.
"""

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from minivit.networks.masks import local_mask, window_mask
from minivit.networks.pooling import AttentionPool
from minivit.networks.positions import FixedPositions, NoPositions, sincos_1d, sincos_2d
from minivit.networks.shapes import Grid, Mask, Tokens
from minivit.networks.stem import ConvStem
from minivit.networks.vit import Block, Positions, ViT, ViTConfig


@dataclass(frozen=True)
class ViTVariantConfig(ViTConfig):
    """The sizes of a ViT, and which of its parts differ from the plain ViT's.

    ``pool="attention"`` reads what a learned query finds in the tokens; there is no class token
    then. ``window`` and ``local`` are sides, in patches, of the windows or of the neighbourhood
    that attention keeps to: at most one of them.
    """

    pool: Literal["class", "mean", "attention"] = "class"  # type: ignore[assignment]
    stem: Literal["patch", "conv"] = "patch"
    positions: Literal["learned", "sincos1d", "sincos2d"] = "learned"
    norm: Literal["pre", "post"] = "pre"
    window: int | None = None
    local: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None and self.local is not None:
            raise ValueError(
                "attention keeps to windows or to a neighbourhood: got "
                f"window={self.window} and local={self.local}"
            )
        if self.local is not None:
            local_mask(self.grid, self.local)  # refuses even sides


PLAIN = {"stem": "patch", "positions": "learned", "norm": "pre", "window": None, "local": None}


def config_of(**values: Any) -> ViTConfig:
    """A ``ViTConfig`` if every part is the plain one, else a ``ViTVariantConfig``."""
    plain = {name: value for name, value in values.items() if name not in PLAIN}
    others = {name: value for name, value in values.items() if name in PLAIN}
    if values.get("pool", "class") in ("class", "mean") and all(
        PLAIN[k] == v for k, v in others.items()
    ):
        return ViTConfig(**plain)
    return ViTVariantConfig(**values)


class PostNormBlock(Block):
    """Post-norm: LayerNorm after each residual addition, as in Vaswani et al. (2017)."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.mlp(x))


def positions_of(kind: str, grid: Grid, dim: int, class_token: bool) -> nn.Module:
    """Positions that are learned, fixed, or none."""
    if kind == "learned":
        return Positions(grid, dim, class_token)
    if kind == "none":
        return NoPositions()
    table = sincos_1d(grid[0] * grid[1], dim) if kind == "sincos1d" else sincos_2d(grid, dim)
    return FixedPositions(table, grid, class_token)


class ViTWithPositions(ViT):
    """A ViT whose configuration says of which kind its positions are: a variant, or a Mixer."""

    def new_positions(self) -> nn.Module:
        c: Any = self.config
        return positions_of(c.positions, c.grid, c.dim, c.pool == "class")


class ViTVariant(ViTWithPositions):
    """A ViT with the parts that its configuration names."""

    config: ViTVariantConfig

    def __init__(self, config: ViTVariantConfig) -> None:
        super().__init__(config)
        c = config
        if c.norm == "post":  # what leaves the blocks is normalised already
            self.norm = nn.Identity()  # type: ignore[assignment]
        if c.pool == "attention":
            self.pool = AttentionPool(c.dim, c.heads, c.hidden)

    def new_embedding(self) -> nn.Module:
        c = self.config
        if c.stem == "conv":
            return ConvStem(c.patch_size, c.dim, c.channels)
        return super().new_embedding()

    def new_block(self) -> nn.Module:
        c = self.config
        kind = Block if c.norm == "pre" else PostNormBlock
        return kind(c.dim, c.heads, c.hidden, c.dropout, c.attention_dropout)

    def mask(self, grid: Grid) -> Mask | None:
        c = self.config
        device = next(self.parameters()).device
        if c.window is not None:
            return window_mask(grid, c.window, c.pool == "class").to(device)
        if c.local is not None:
            return local_mask(grid, c.local, c.pool == "class").to(device)
        return None

    def pooled(self, x: Tokens) -> Tensor:
        return self.pool(x) if self.config.pool == "attention" else super().pooled(x)
