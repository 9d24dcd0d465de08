"""What takes the place of a part that ``minivit.remove`` takes out of a block."""

import torch
from torch import nn

from minivit.networks.mixer import FeedForwardBlock, MixerBlock
from minivit.networks.shapes import Mask, Tokens
from minivit.networks.variants import PostNormBlock
from minivit.networks.vit import Block


class Nothing(nn.Module):
    """A branch that adds nothing to the residual stream."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        return torch.zeros_like(x)


class Same(nn.Module):
    """The identity: a removed branch of a block without residual connections."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        return x


class NoResidualBlock(Block):
    """A :class:`~minivit.networks.vit.Block` without the residual connections."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.attention(self.norm1(x), mask)
        return self.mlp(self.norm2(x))


class NoResidualPostNormBlock(PostNormBlock):
    """The same of a :class:`~minivit.networks.variants.PostNormBlock`."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.norm1(self.attention(x, mask))
        return self.norm2(self.mlp(x))


class NoResidualMixerBlock(MixerBlock):
    """The same of a :class:`~minivit.networks.mixer.MixerBlock`."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.mixing(self.norm1(x))
        return self.mlp(self.norm2(x))


class NoResidualFeedForwardBlock(FeedForwardBlock):
    """The same of a :class:`~minivit.networks.mixer.FeedForwardBlock`."""

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = self.mlp(self.norm1(x))
        return self.mixing(self.norm2(x))


WITHOUT_RESIDUAL: dict[type[nn.Module], type[nn.Module]] = {
    Block: NoResidualBlock,
    PostNormBlock: NoResidualPostNormBlock,
    MixerBlock: NoResidualMixerBlock,
    FeedForwardBlock: NoResidualFeedForwardBlock,
}
