"""The block of today, chapter 25: what stands in it beside the plain parts of ``minivit/vit.py``.

Each class has the interface of the plain one, so that whatever looks into a ViT looks into these.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from minivit.model import check_mask
from minivit.parts import AttentionPool, GatedMLP, add_layer_scale
from minivit.shapes import Features, Grid, Mask, Queries, Tokens
from minivit.variants import ViTVariant, ViTVariantConfig
from minivit.vit import Block, MultiHeadAttention

NormOfWidth = Callable[[int], nn.Module]


def axial_angles(grid: Grid, pairs: int, base: float = 100.0) -> Float[Tensor, "patches pairs"]:
    """By how much each patch turns each pair of features: half of them by rows, half by columns.

    Heo et al. (2024), "Rotary Position Embedding for Vision Transformer", equations 7 and 8.
    """
    rates = base ** -(torch.arange(pairs // 2) / (pairs // 2))
    rows, columns = torch.cartesian_prod(*map(torch.arange, grid)).T
    return torch.cat([rows[:, None] * rates, columns[:, None] * rates], 1)


class Rotation(nn.Module):
    """Turns the features 2j and 2j + 1 of each head of a patch, as a pair, by the patch's angle.

    Su et al. (2021), "RoFormer". Tokens before the patches are not turned.
    """

    cos: Float[Tensor, "patches pairs"]
    sin: Float[Tensor, "patches pairs"]

    def __init__(self, cos: Tensor, sin: Tensor) -> None:
        super().__init__()
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x: Queries) -> Queries:
        first = x.shape[-2] - len(self.cos)
        if first < 0:
            raise ValueError(f"expected the {len(self.cos)} patches of its grid: got {x.shape[-2]}")
        a, b = x[..., first:, ::2], x[..., first:, 1::2]
        turned = torch.stack([a * self.cos - b * self.sin, a * self.sin + b * self.cos], -1)
        return torch.cat([x[..., :first, :], turned.flatten(-2)], -2)


class RotaryAttention(MultiHeadAttention):
    """Queries and keys are normed, head by head, and turned by their patch's place, then meet.

    The norms are those of Dehghani et al. (2023), "Scaling Vision Transformers to 22 Billion
    Parameters"; ``nn.Identity`` leaves either out.
    """

    def __init__(
        self, dim: int, heads: int, rotation: nn.Module, norm: NormOfWidth = nn.Identity
    ) -> None:
        super().__init__(dim, heads)
        self.rotation = rotation
        self.q_norm, self.k_norm = norm(dim // heads), norm(dim // heads)

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        check_mask(mask)
        q, k, v = rearrange(self.qkv(x), "b n (qkv h d) -> qkv b h n d", qkv=3, h=self.heads)
        q, k = self.rotation(self.q_norm(q)), self.rotation(self.k_norm(k))
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(rearrange(z, "b h n d -> b n (h d)"))


class ParallelBlock(Block):
    """Attention and MLP read the same tokens, side by side; ``norm2`` is not there."""

    def __init__(self, dim: int, heads: int, hidden: int) -> None:
        super().__init__(dim, heads, hidden)
        self.norm2 = nn.Identity()  # type: ignore[assignment]

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        y = self.norm1(x)
        return x + self.attention(y, mask) + self.mlp(y)


class NormedGatedMLP(GatedMLP):
    """SwiGLU with a norm of the hidden layer, as in EVA-02 (Fang et al. 2023)."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__(dim, hidden)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Features) -> Features:
        gates, values = self.up(x).chunk(2, -1)
        return self.down(self.norm(self.activation(gates) * values))


class RotaryViT(ViTVariant):
    """A ViT whose queries and keys are turned, at one size of images; of another library's.

    ``pool_heads``: an attention pool reads all tokens, not the patches alone, with so many heads.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "RotaryViT":
        return nn.Module.__new__(cls)  # a configuration is not all that it is made from

    def __init__(
        self,
        config: Any,
        rotation: Rotation,
        last_norm: bool = True,
        hidden_norm: bool = False,
        pool_heads: int | None = None,
        pool_hidden: int = 0,
    ) -> None:
        c = ViTVariantConfig(**vars(config))
        super().__init__(c)
        block: Any
        for block in self.blocks:
            block.attention = RotaryAttention(c.dim, c.heads, rotation)
            if c.layer_scale is not None:
                add_layer_scale(block.attention, c.dim, c.layer_scale)
            if hidden_norm:
                block.mlp = NormedGatedMLP(c.dim, c.hidden)
        self.reads_all = pool_heads is not None
        if pool_heads is not None:
            self.pool = AttentionPool(c.dim, pool_heads, pool_hidden)
        for part in self.modules():
            if isinstance(part, nn.LayerNorm):
                part.eps = c.norm_eps
        if not last_norm:
            self.norm = nn.Identity()  # type: ignore[assignment]

    def pooled(self, x: Tokens) -> Float[Tensor, "batch features"]:
        return self.pool(x) if self.reads_all else super().pooled(x)
