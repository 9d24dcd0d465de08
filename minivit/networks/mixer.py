"""Vision without attention: an MLP across the tokens mixes them.

Two papers found it in the same week: the MLP-Mixer of Tolstikhin et al. (2021), "MLP-Mixer: An
all-MLP Architecture for Vision", and the feed-forward model of Melas-Kyriazi (2021), "Do You Even
Need Attention?". They differ in order, norms, positions and class token: in :class:`MixerConfig`.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from minivit.networks.encoder import MLP, NORM_EPS, SubLayers
from minivit.networks.model import (
    Model,
    check_branches,
    check_choices,
    check_flags,
    check_positive,
    check_ratios,
    check_shares,
)
from minivit.networks.patches import PatchEmbedding, Size, grid_of, pair
from minivit.networks.positions import Positions


@dataclass(frozen=True)
class MixerConfig:
    """Everything that makes one Mixer differ from another. The defaults are Mixer-B/16's.

    The feed-forward model has ``first="mlp"``, ``mixing_norm="tokens"``, ``positions="learned"``,
    ``pool="class"``, and ``mixing_hidden`` four times its number of tokens.

    Args:
        image_size: Height and width in pixels, or one number for both. The model takes no other:
            its weights are for a number of tokens.
        patch_size: Height and width of a patch in pixels, or one number for both.
        channels: Channels of a picture.
        classes: Number of logits.
        dim: Width of a token.
        depth: Number of blocks.
        mixing_hidden: Width of the hidden layer across the tokens: :math:`D_S` of Tolstikhin et al.
        mlp_ratio: Width of the hidden layer of the MLP on each token, in units of ``dim``:
            :math:`D_C / C`.
        first: Which sub-layer comes first in a block: ``"mixing"`` across the tokens, or the
            ``"mlp"`` on each token.
        mixing_norm: What the norm of the mixing makes alike: each token over its
            ``"channels"``, as every other norm does, or each channel over the ``"tokens"``.
        positions: ``"none"``, ``"learned"``, ``"sincos1d"`` or ``"sincos2d"``.
        pool: What the head reads: the ``"mean"`` of the tokens, or a ``"class"`` token.
        norm: LayerNorm ``"pre"`` the sub-layers and the head, or ``"none"``.
        residual: Whether sub-layers are added to their inputs.
        dropout: Share of entries dropped after the positions and in the MLPs.
        stochastic_depth: Probability that a sub-layer of the last block is left out; it grows
            linearly from 0 in the first.

    Raises:
        ValueError: A field that is none of its choices or not positive, patches that do not divide
            the picture, or stochastic depth without residuals.
    """

    image_size: Size = 224
    patch_size: Size = 16
    channels: int = 3
    classes: int = 1000
    dim: int = 768
    depth: int = 12
    mixing_hidden: int = 384
    mlp_ratio: float = 4
    first: Literal["mixing", "mlp"] = "mixing"
    mixing_norm: Literal["channels", "tokens"] = "channels"
    positions: Literal["none", "learned", "sincos1d", "sincos2d"] = "none"
    pool: Literal["mean", "class"] = "mean"
    norm: Literal["pre", "none"] = "pre"
    residual: bool = True
    dropout: float = 0.0
    stochastic_depth: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self, "channels", "classes", "dim", "depth", "mixing_hidden")
        check_ratios(self, "mlp_ratio")
        check_shares(self, "dropout", "stochastic_depth")
        check_flags(self, "residual")
        check_branches(self.residual, self.stochastic_depth)
        check_choices(self, first=("mixing", "mlp"), mixing_norm=("channels", "tokens"))
        check_choices(self, pool=("mean", "class"), norm=("pre", "none"))
        if self.hidden < 1:
            raise ValueError(f"mlp_ratio leaves the MLP no width: got {self.mlp_ratio}")
        _ = self.grid  # checks itself

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return grid_of(self.image_size, self.patch_size)

    @property
    def tokens(self) -> int:
        """Number of tokens, with the class token if there is one."""
        return self.grid[0] * self.grid[1] + (self.pool == "class")

    @property
    def hidden(self) -> int:
        """Width of the hidden layer of the MLP on each token."""
        return round(self.dim * self.mlp_ratio)


class Mixing(MLP):
    """The MLP across the tokens, on every channel alone: ``dim`` is the number of tokens."""

    def forward(self, x: Tensor) -> Tensor:
        """Mixes tokens ``[batch, tokens, dim]`` into tokens of the same shape."""
        return super().forward(x.mT).mT  # [batch, dim, tokens] between


class TokenNorm(nn.LayerNorm):
    """LayerNorm of each channel over the tokens, with a scale and a shift for every token."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalises tokens ``[batch, tokens, dim]`` along their second axis."""
        return super().forward(x.mT).mT


class MixerBlock(SubLayers):
    """``x + mixing(norm1(x))``, then ``x + mlp(norm2(x))``, or first the MLP.

    Args:
        config: The sizes and choices.
        stochastic_depth: Probability that a sub-layer is left out for a picture.

    Raises:
        ValueError: Stochastic depth without residuals.
    """

    def __init__(self, config: MixerConfig, stochastic_depth: float) -> None:
        c = config
        super().__init__(c.norm, c.residual, stochastic_depth)
        self.mixing_first = c.first == "mixing"
        self.mixing = Mixing(c.tokens, c.mixing_hidden, c.dropout)
        self.mlp = MLP(c.dim, c.hidden, c.dropout)
        norms: tuple[nn.Module, nn.Module] = nn.Identity(), nn.Identity()
        if c.norm == "pre":
            over_tokens = c.mixing_norm == "tokens"
            mixing_norm = TokenNorm(c.tokens, NORM_EPS) if over_tokens else _norm(c.dim)
            norms = mixing_norm, _norm(c.dim)
        self.norm1, self.norm2 = norms if self.mixing_first else norms[::-1]

    def forward(self, x: Tensor) -> Tensor:
        """Maps tokens ``[batch, tokens, dim]`` to tokens of the same shape."""
        if self.mixing_first:
            return self.step(self.step(x, self.norm1, self.mixing), self.norm2, self.mlp)
        return self.step(self.step(x, self.norm1, self.mlp), self.norm2, self.mixing)


def _norm(dim: int) -> nn.LayerNorm:
    return nn.LayerNorm(dim, eps=NORM_EPS)


class Mixer(Model):
    """Patches become tokens, blocks mix them without attention, a head reads the logits.

    The head starts at zero, so the logits of an untrained model are all zero.

    Args:
        config: The sizes and choices.

    Raises:
        ValueError: Choices that do not go together.
    """

    config: MixerConfig
    head: nn.Linear

    def __init__(self, config: MixerConfig) -> None:
        super().__init__()
        self.config = c = config
        self.patch_embedding = PatchEmbedding(c.patch_size, c.dim, c.channels)
        # [1, 1, dim], or none
        self.class_token = nn.Parameter(torch.zeros(1, 1, c.dim)) if c.pool == "class" else None
        self.positions = Positions(c.positions, c.grid, c.dim, c.pool == "class")
        self.dropout = nn.Dropout(c.dropout)
        self.blocks = nn.ModuleList(
            MixerBlock(c, c.stochastic_depth * i / max(c.depth - 1, 1)) for i in range(c.depth)
        )
        self.norm = _norm(c.dim) if c.norm == "pre" else nn.Identity()
        self.head = nn.Linear(c.dim, c.classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Gives logits ``[batch, classes]`` for images ``[batch, channels, height, width]``.

        Raises:
            ValueError: Images of another rank, number of channels, size, dtype or device.
        """
        x = self.norm(self.tokens(images))  # [batch, tokens, dim]
        x = x[:, 0] if self.class_token is not None else x.mean(1)
        return self.head(x)  # [batch, dim] -> [batch, classes]

    def tokens(self, images: Tensor) -> Tensor:
        """Gives the tokens after the blocks, before the final norm.

        Returns:
            ``[batch, tokens, dim]``: the class token first, if there is one, then the patches in
            reading order.
        """
        x = self.patch_embedding(images)  # [batch, patches, dim]
        height, width = pair(self.config.image_size)
        if images.shape[2:] != (height, width):
            raise ValueError(
                "a Mixer's weights are for one number of tokens, so it takes pictures of "
                f"{height} x {width} pixels alone: got {images.shape[2]} x {images.shape[3]}"
            )
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1)
        x = self.dropout(self.positions(x, self.config.grid))
        for block in self.blocks:
            x = block(x)
        return x
