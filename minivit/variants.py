"""Variants of the vision transformer: each is a class that takes the place of a plain part.

``catalogue.py`` creates them by the fields of :class:`ViTVariantConfig`.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from minivit.model import check_rule
from minivit.parts import (
    ACTIVATIONS,
    AttentionPool,
    ConvStem,
    EmbeddedPositions,
    GatedMLP,
    add_layer_scale,
    local_mask,
    window_mask,
)
from minivit.positions import FixedPositions, NoPositions, sincos_1d, sincos_2d
from minivit.shapes import Grid, Images, Logits, Mask, Tokens
from minivit.vit import NORM_EPS, Block, Positions, ViT, ViTConfig


@dataclass(frozen=True)
class ViTVariantConfig(ViTConfig):
    """The sizes of a ViT, and which of its parts differ from the plain ViT's.

    ``pool="attention"`` reads what a learned query finds in the tokens; there is no class token
    then. ``window`` and ``local`` are sides, in patches, of the windows or of the neighbourhood
    that attention keeps to: at most one of them. ``registers`` are learned tokens that are no
    patches; the head reads none, but for ``pool="class+register"`` (a distilled DeiT), where it
    reads the class token beside the first one. With ``"class+mean"`` (classifiers on DINOv2) it
    reads the class token beside the mean of the patches.
    """

    pool: Literal["class", "mean", "attention", "class+mean", "class+register"] = "class"  # type: ignore[assignment]
    stem: Literal["patch", "conv"] = "patch"
    positions: Literal["learned", "sincos1d", "sincos2d"] = "learned"
    norm: Literal["pre", "post"] = "pre"
    window: int | None = None
    local: int | None = None
    registers: int | None = None
    embedding_norm: bool = False  # before the blocks: CLIP's
    layer_scale: float | None = None  # what its factors start from
    activation: Literal["gelu", "tanh", "quick", "swiglu"] = "gelu"
    norm_eps: float = NORM_EPS
    norm_after_pool: bool = False  # the last norm reads one vector, not the tokens: timm's fc_norm

    def __post_init__(self) -> None:
        super().__post_init__()
        around = self.window or self.local
        check_rule(self, not (self.window and self.local), "window and local exclude each other")
        check_rule(self, (self.local or 1) % 2 == 1, "local is the odd side of a neighbourhood")
        check_rule(self, not (self.registers and around), "registers are in no window or local")
        if self.positions != "learned":
            rule = "registers and embedding_norm go with learned positions"
            check_rule(self, not (self.registers or self.embedding_norm), rule)
        if self.pool == "attention":
            rule = "the MLP of an attention pool has no swiglu as activation"
            check_rule(self, self.activation != "swiglu", rule)
        if self.norm == "post" or self.pool not in ("mean", "attention"):
            rule = "norm_after_pool goes with norm pre and pool mean or attention"
            check_rule(self, not self.norm_after_pool, rule)
        if self.pool == "class+register":
            check_rule(self, bool(self.registers), "a pool of class+register reads registers")


# What the fields of a variant are in the plain ViT.
PLAIN = {
    field.name: field.default
    for field in fields(ViTVariantConfig)
    if field.name not in ViTConfig.__dataclass_fields__
}


def config_of(**values: Any) -> ViTConfig:
    """A ``ViTConfig`` if every part is the plain one, else a ``ViTVariantConfig``."""
    plain = {name: value for name, value in values.items() if name not in PLAIN}
    differs = any(PLAIN[name] != values[name] for name in PLAIN.keys() & values.keys())
    if differs or values.get("pool", "class") not in ("class", "mean"):
        return ViTVariantConfig(**values)
    return ViTConfig(**plain)


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
        return positions_of(c.positions, c.grid, c.dim, c.pool.startswith("class"))


class ViTVariant(ViTWithPositions):
    """A ViT with the parts that its configuration names."""

    config: ViTVariantConfig

    def __init__(self, config: ViTVariantConfig) -> None:
        super().__init__(config)
        c = config
        if c.norm == "post":  # what leaves the blocks is normalised already
            self.norm = nn.Identity()  # type: ignore[assignment]
        if c.pool == "attention":
            self.pool: Any = AttentionPool(c.dim, c.heads, c.hidden)
            self.pool.mlp.activation = ACTIVATIONS[c.activation]()  # type: ignore[assignment]
        first = torch.zeros(1, c.pool.startswith("class"), c.dim)
        if c.registers:
            first = torch.cat([first, 0.02 * torch.randn(1, c.registers, c.dim)], 1)
        # The class token, then the registers: [1, tokens, dim]
        self.class_token = nn.Parameter(first) if first.shape[1] else None
        if "+" in c.pool:
            self.head = nn.Linear(2 * c.dim, c.classes)
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)
        for part in self.modules():
            if isinstance(part, nn.LayerNorm):
                part.eps = c.norm_eps

    def new_embedding(self) -> nn.Module:
        c = self.config
        if c.stem == "patch":
            return super().new_embedding()
        return ConvStem(c.patch_size, c.dim, c.channels)

    def new_positions(self) -> nn.Module:
        c = self.config
        if not (c.registers or c.embedding_norm):
            return super().new_positions()
        class_token = c.pool.startswith("class")
        return EmbeddedPositions(c.grid, c.dim, class_token, c.registers or 0, c.embedding_norm)

    def new_block(self) -> nn.Module:
        c = self.config
        kind = Block if c.norm == "pre" else PostNormBlock
        block: Any = kind(c.dim, c.heads, c.hidden, c.dropout, c.attention_dropout)
        if c.activation == "swiglu":
            block.mlp = GatedMLP(c.dim, c.hidden, c.dropout)
        else:
            block.mlp.activation = ACTIVATIONS[c.activation]()
        if c.layer_scale is not None:
            add_layer_scale(block.attention, c.dim, c.layer_scale)
            add_layer_scale(block.mlp, c.dim, c.layer_scale)
        return block

    def mask(self, grid: Grid) -> Mask | None:
        c = self.config
        if c.window is None and c.local is None:
            return None
        class_token = self.class_token is not None
        side: Any = c.window or c.local
        mask = (window_mask if c.window else local_mask)(grid, side, class_token)
        return mask.to(next(self.parameters()).device)

    def pooled(self, x: Tokens) -> Float[Tensor, "batch features"]:
        kind = self.config.pool
        if kind == "class+register":
            return x[:, :2].flatten(1)
        if kind == "class":
            return x[:, 0]
        patches = x if self.class_token is None else x[:, self.class_token.shape[1] :]
        if kind == "attention":
            return self.pool(patches)
        mean = patches.mean(1)
        return torch.cat([x[:, 0], mean], 1) if kind == "class+mean" else mean

    def forward(self, images: Images) -> Logits:
        if self.config.norm_after_pool:
            return self.head(self.norm(self.pooled(self.tokens(images))))
        return super().forward(images)
