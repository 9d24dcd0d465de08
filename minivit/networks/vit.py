"""The vision transformer of Dosovitskiy et al. (2021), "An Image is Worth 16x16 Words"."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from minivit.networks.encoder import NORM_EPS, Block
from minivit.networks.masks import local_mask, window_mask
from minivit.networks.model import (
    Model,
    check_branches,
    check_choices,
    check_flags,
    check_positive,
    check_ratios,
    check_shares,
)
from minivit.networks.patches import ConvStem, PatchEmbedding, Size, grid_of
from minivit.networks.pooling import AttentionPool
from minivit.networks.positions import Positions


@dataclass(frozen=True)
class ViTConfig:
    """Everything that makes one ViT differ from another. The defaults are ViT-B/16's.

    Args:
        image_size: Height and width in pixels, or one number for both: what the table of positions
            is made for. The model takes every size that its patches divide.
        patch_size: Height and width of a patch in pixels, or one number for both.
        channels: Channels of a picture.
        classes: Number of logits.
        dim: Width of a token.
        depth: Number of blocks.
        heads: Attention heads in a block; must divide ``dim``.
        mlp_ratio: Width of an MLP's hidden layer, in units of ``dim``.
        stem: ``"patch"``, a linear map per patch, or ``"conv"``, convolutions.
        positions: ``"none"``, ``"learned"``, ``"sincos1d"`` or ``"sincos2d"``.
        pool: What the head reads: the ``"class"`` token, the ``"mean"`` of the patches' tokens, or
            what a learned query finds in them (``"attention"``). Only the first has a class token.
        window: Side of the windows, in patches, that attention keeps to. Default: none.
        local: Side, in patches, of the neighbourhood that attention keeps to. Default: none.
        attention: Whether blocks have attention.
        mlp: Whether blocks have an MLP; without it they are attention alone.
        norm: LayerNorm ``"pre"`` or ``"post"`` the sub-layers, or ``"none"``. The final norm goes
            with ``"pre"`` alone: with ``"post"``, what leaves the blocks is normalised already.
        residual: Whether sub-layers are added to their inputs.
        dropout: Share of entries dropped after the positions, after attention and in the MLPs.
        attention_dropout: Share of attention weights dropped.
        stochastic_depth: Probability that a sub-layer of the last block is left out; it grows
            linearly from 0 in the first.

    Raises:
        ValueError: A field that is none of its choices or not positive, patches that do not divide
            the picture, windows and neighbourhoods at once, one of them without attention, or
            stochastic depth without residuals.
    """

    image_size: Size = 224
    patch_size: Size = 16
    channels: int = 3
    classes: int = 1000
    dim: int = 768
    depth: int = 12
    heads: int = 12
    mlp_ratio: float = 4
    stem: Literal["patch", "conv"] = "patch"
    positions: Literal["none", "learned", "sincos1d", "sincos2d"] = "learned"
    pool: Literal["class", "mean", "attention"] = "class"
    window: int | None = None
    local: int | None = None
    attention: bool = True
    mlp: bool = True
    norm: Literal["pre", "post", "none"] = "pre"
    residual: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    stochastic_depth: float = 0.0

    def __post_init__(self) -> None:
        masks = [field for field in ("window", "local") if getattr(self, field) is not None]
        check_positive(self, "channels", "classes", "dim", "depth", "heads", *masks)
        check_shares(self, "dropout", "attention_dropout", "stochastic_depth")
        check_flags(self, "attention", "mlp", "residual")
        check_branches(self.residual, self.stochastic_depth)
        check_ratios(self, "mlp_ratio")
        check_choices(self, stem=("patch", "conv"), pool=("class", "mean", "attention"))
        if self.hidden < 1:
            raise ValueError(f"mlp_ratio leaves the MLP no width: got {self.mlp_ratio}")
        if len(masks) > self.attention:
            raise ValueError(
                "attention, where there is any, keeps to windows or to a neighbourhood: got "
                f"window={self.window} and local={self.local} with attention={self.attention}"
            )
        _ = self.grid, self.mask(self.grid)  # these check themselves

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return grid_of(self.image_size, self.patch_size)

    @property
    def hidden(self) -> int:
        """Width of an MLP's hidden layer."""
        return round(self.dim * self.mlp_ratio)

    def mask(self, grid: tuple[int, int]) -> Tensor | None:
        """Who may attend to whom on this grid, ``[tokens, tokens]``; none where all may."""
        if self.window is not None:
            return window_mask(grid, self.window, self.pool == "class")
        if self.local is not None:
            return local_mask(grid, self.local, self.pool == "class")
        return None


class ViT(Model):
    """Patches become tokens, blocks mix them, a head reads the logits.

    Equal to torchvision's ``VisionTransformer`` for its sizes, and initialised alike: the class
    token and the head start at zero, so the logits of an untrained model are all zero.

    Args:
        config: The sizes and choices.

    Raises:
        ValueError: Choices that do not go together.
    """

    config: ViTConfig
    head: nn.Linear

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = c = config
        stem: type[nn.Module] = PatchEmbedding if c.stem == "patch" else ConvStem
        self.patch_embedding = stem(c.patch_size, c.dim, c.channels)
        # [1, 1, dim], or none
        self.class_token = nn.Parameter(torch.zeros(1, 1, c.dim)) if c.pool == "class" else None
        self.positions = Positions(c.positions, c.grid, c.dim, c.pool == "class")
        self.dropout = nn.Dropout(c.dropout)
        self.blocks = nn.ModuleList(
            Block(
                c.dim,
                c.heads,
                c.hidden,
                attention=c.attention,
                mlp=c.mlp,
                norm=c.norm,
                residual=c.residual,
                dropout=c.dropout,
                attention_dropout=c.attention_dropout,
                stochastic_depth=c.stochastic_depth * i / max(c.depth - 1, 1),
            )
            for i in range(c.depth)
        )
        self.norm = nn.LayerNorm(c.dim, eps=NORM_EPS) if c.norm == "pre" else nn.Identity()
        self.pool = AttentionPool(c.dim, c.heads, c.hidden) if c.pool == "attention" else None
        self.head = nn.Linear(c.dim, c.classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Gives logits ``[batch, classes]`` for images ``[batch, channels, height, width]``.

        Raises:
            ValueError: Images of another rank, number of channels, dtype or device, or of a size
                that the patches do not divide.
        """
        x = self.norm(self.tokens(images))  # [batch, tokens, dim]
        if self.pool is not None:
            x = self.pool(x)
        else:
            x = x[:, 0] if self.class_token is not None else x.mean(1)
        return self.head(x)  # [batch, dim] -> [batch, classes]

    def tokens(self, images: Tensor) -> Tensor:
        """Gives the tokens after the blocks, before the final norm.

        Returns:
            ``[batch, tokens, dim]``: the class token first, if there is one, then the patches in
            reading order.
        """
        x = self.patch_embedding(images)  # [batch, patches, dim]
        grid = grid_of((images.shape[2], images.shape[3]), self.config.patch_size)
        mask = self.config.mask(grid)
        mask = None if mask is None else mask.to(x.device)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1)
        x = self.dropout(self.positions(x, grid))
        for block in self.blocks:
            x = block(x, mask)
        return x
