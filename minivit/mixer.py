"""Vision without attention: an MLP across the tokens mixes them.

Two papers found it in the same week: the MLP-Mixer of Tolstikhin et al. (2021), "MLP-Mixer: An
all-MLP Architecture for Vision", and the feed-forward model of Melas-Kyriazi (2021), "Do You Even
Need Attention?". They differ in order, norms, positions and class token: in :class:`MixerConfig`.
"""

from dataclasses import dataclass
from typing import Literal

from torch import nn

from minivit.model import PatchConfig, check_images
from minivit.patches import pair
from minivit.shapes import Fraction, Images, Mask, Size, Tokens
from minivit.variants import ViTWithPositions
from minivit.vit import MLP, NORM_EPS


@dataclass(frozen=True)
class MixerConfig(PatchConfig):
    """The sizes of a Mixer, in pixels and features. The defaults are Mixer-B/16's.

    The feed-forward model has ``first="mlp"``, ``mixing_norm="tokens"``, ``positions="learned"``,
    ``pool="class"``, and ``mixing_hidden`` four times its number of tokens.
    """

    image_size: Size = 224
    patch_size: Size = 16
    channels: int = 3
    classes: int = 1000
    dim: int = 768
    depth: int = 12
    mixing_hidden: int = 384  # the papers' D_S
    mlp_ratio: float = 4  # the papers' D_C, over dim
    first: Literal["mixing", "mlp"] = "mixing"  # in a block
    mixing_norm: Literal["channels", "tokens"] = "channels"  # axis of the norm before the mixing
    positions: Literal["none", "learned", "sincos1d", "sincos2d"] = "none"
    pool: Literal["mean", "class"] = "mean"  # what the head reads
    dropout: Fraction = 0.0
    stochastic_depth: Fraction = 0.0  # how often the last block's branches are left out

    @property
    def tokens(self) -> int:
        """Number of tokens, with the class token if there is one."""
        return self.grid[0] * self.grid[1] + (self.pool == "class")


class Mixing(MLP):
    """The MLP across the tokens, on every channel alone: ``dim`` is the number of tokens."""

    def forward(self, x: Tokens) -> Tokens:
        return super().forward(x.mT).mT  # [batch, dim, tokens] between


class TokenNorm(nn.LayerNorm):
    """LayerNorm of each channel over the tokens, with a scale and a shift for every token."""

    def forward(self, x: Tokens) -> Tokens:
        return super().forward(x.mT).mT


class MixerBlock(nn.Module):
    """Mixing across the tokens, then an MLP on each; both add to the residual stream."""

    def __init__(self, config: MixerConfig) -> None:
        super().__init__()
        c = config
        self.mixing = Mixing(c.tokens, c.mixing_hidden, c.dropout)
        self.mlp = MLP(c.dim, c.hidden, c.dropout)
        self.norm1: nn.Module = nn.LayerNorm(c.dim, eps=NORM_EPS)
        self.norm2: nn.Module = nn.LayerNorm(c.dim, eps=NORM_EPS)
        if c.mixing_norm == "tokens":
            mixing_norm = "norm1" if c.first == "mixing" else "norm2"
            setattr(self, mixing_norm, TokenNorm(c.tokens, eps=NORM_EPS))

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = x + self.mixing(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class FeedForwardBlock(MixerBlock):
    """The MLP on each token first, then the mixing."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = x + self.mlp(self.norm1(x))
        return x + self.mixing(self.norm2(x))


class Mixer(ViTWithPositions):
    """A ViT whose blocks mix tokens by an MLP, whose weights fix the size of the images."""

    config: MixerConfig  # type: ignore[assignment]

    def new_block(self) -> nn.Module:
        return (MixerBlock if self.config.first == "mixing" else FeedForwardBlock)(self.config)

    def tokens(self, images: Images) -> Tokens:
        check_images(images, self)
        height, width = pair(self.config.image_size)
        if images.shape[2:] != (height, width):
            raise ValueError(
                "a Mixer's weights are for one number of tokens, so it takes images of "
                f"{height} x {width} pixels alone: got {images.shape[2]} x {images.shape[3]}"
            )
        return super().tokens(images)
