"""Variants of the vision transformer: each is a class that takes the place of a plain part.

``catalogue.py`` creates them by the fields of :class:`ViTVariantConfig`.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from minivit.parts import (
    ACTIVATIONS,
    AttentionPool,
    ConvStem,
    EmbeddedPositions,
    GatedMLP,
    local_mask,
    scale_branches,
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
        if self.window is not None and self.local is not None:
            raise ValueError(
                "attention keeps to windows or to a neighbourhood: got "
                f"window={self.window} and local={self.local}"
            )
        if self.local is not None:
            local_mask(self.grid, self.local)  # refuses even sides
        if self.registers and (self.window or self.local):
            raise ValueError("registers are in no window and no neighbourhood: expected neither")
        if (self.registers or self.embedding_norm) and self.positions != "learned":
            raise ValueError(
                "registers and a norm before the blocks go with learned positions: "
                f"got positions={self.positions!r}"
            )
        if self.pool == "attention" and self.activation == "swiglu":
            raise ValueError("the MLP of an attention pool has no gates: got activation='swiglu'")
        behind = self.norm == "pre" and self.pool in ("mean", "attention")
        if self.norm_after_pool and not behind:
            raise ValueError(
                "norm_after_pool goes with pre-norm and pool='mean' or 'attention': got "
                f"norm={self.norm!r}, pool={self.pool!r}"
            )
        if self.pool == "class+register" and not self.registers:
            raise ValueError("pool='class+register' reads a register: expected registers=1 or more")


# What the fields of a variant are in the plain ViT.
PLAIN = {
    field.name: field.default
    for field in fields(ViTVariantConfig)
    if field.name not in ViTConfig.__dataclass_fields__
}


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
        if c.stem == "conv":
            return ConvStem(c.patch_size, c.dim, c.channels)
        return super().new_embedding()

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
            scale_branches(block, c.layer_scale)
        return block

    def mask(self, grid: Grid) -> Mask | None:
        c = self.config
        device = next(self.parameters()).device
        if c.window is not None:
            return window_mask(grid, c.window, self.class_token is not None).to(device)
        if c.local is not None:
            return local_mask(grid, c.local, self.class_token is not None).to(device)
        return None

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
