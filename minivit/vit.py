"""A vision transformer, from pixels to logits.

Dosovitskiy et al. (2021), "An Image is Worth 16x16 Words"; attention as in Vaswani et al. (2017),
"Attention Is All You Need". Sizes and initial weights are torchvision's.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from minivit.model import Model, PatchConfig, check_images, check_mask
from minivit.patches import grid_of
from minivit.positions import resample
from minivit.shapes import (
    Attended,
    Features,
    Fraction,
    Grid,
    Images,
    Keys,
    Logits,
    Mask,
    Queries,
    Size,
    Tokens,
    Values,
    Weights,
)
from minivit.stochastic_depth import add_stochastic_depth

NORM_EPS = 1e-6  # torchvision's; nn.LayerNorm has 1e-5


def attention_weights(q: Queries, k: Keys, mask: Mask | None = None) -> Weights:
    r"""How much each query takes from each key: :math:`\mathrm{softmax}(QK^\top/\sqrt{d})`.

    Each row sums to 1, or is all zeros if the mask leaves its query no key.
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        return scores.softmax(-1)
    # Not -inf: a row of those would have NaN gradients. The second fill makes such a row zero.
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1).masked_fill(~mask, 0)


def scaled_dot_product_attention(
    q: Queries, k: Keys, v: Values, mask: Mask | None = None
) -> Attended:
    r"""The values averaged with these weights: :math:`\mathrm{softmax}(QK^\top/\sqrt{d})\,V`."""
    return attention_weights(q, k, mask) @ v


class MultiHeadAttention(nn.Module):
    """Heads side by side, each of width ``dim / heads``, followed by an output projection.

    One linear map gives q, k and v of all heads, in the order of torchvision's ``in_proj_weight``.
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0, attention_dropout: float = 0):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.attention_dropout = attention_dropout  # fraction of the weights, in training

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        check_mask(mask)
        q, k, v = rearrange(self.qkv(x), "b n (qkv h d) -> qkv b h n d", qkv=3, h=self.heads)
        dropout = self.attention_dropout if self.training else 0.0
        # softmax(q k^T / sqrt(d_head)) v: [batch, heads, tokens, d_head]
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.dropout(self.out(rearrange(z, "b h n d -> b n (h d)")))


class MLP(nn.Module):
    r"""Two linear maps with a GELU between, on every token alone: :math:`W_2\,g(W_1x+b_1)+b_2`."""

    def __init__(self, dim: int, hidden: int, dropout: float = 0):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.activation = nn.GELU()  # g(x) = x times the normal distribution function, exactly
        self.down = nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.up, self.down):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x: Features) -> Features:
        hidden = self.dropout(self.activation(self.up(x)))  # [..., hidden]
        return self.dropout(self.down(hidden))


class Block(nn.Module):
    """Attention between the tokens, then an MLP on each; both add to the residual stream."""

    def __init__(
        self, dim: int, heads: int, hidden: int, dropout: float = 0, attention_dropout: float = 0
    ):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=NORM_EPS)
        self.attention = MultiHeadAttention(dim, heads, dropout, attention_dropout)
        self.norm2 = nn.LayerNorm(dim, eps=NORM_EPS)
        self.mlp = MLP(dim, hidden, dropout)
        # As torchvision's, after the MLP so that a seed gives the same model as ever.
        nn.init.xavier_uniform_(self.attention.qkv.weight)
        nn.init.zeros_(self.attention.qkv.bias)
        nn.init.zeros_(self.attention.out.bias)

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class PatchEmbedding(nn.Module):
    """A linear map from a patch's pixels to a token: a convolution with kernel = stride = patch."""

    def __init__(self, patch_size: Size, dim: int, channels: int = 3):
        super().__init__()
        self.projection = nn.Conv2d(channels, dim, patch_size, stride=patch_size)
        pixels = self.projection.weight[0].numel()
        nn.init.trunc_normal_(self.projection.weight, std=pixels**-0.5)
        nn.init.zeros_(self.projection.bias)  # type: ignore[arg-type]

    def forward(self, images: Images) -> Tokens:
        return rearrange(self.projection(images), "b d rows columns -> b (rows columns) d")


class Positions(nn.Module):
    """Adds a learned position embedding to each token, interpolated for other grids."""

    def __init__(self, grid: Grid, dim: int, class_token: bool = True):
        super().__init__()
        self.grid = grid
        self.table = nn.Parameter(torch.empty(class_token + grid[0] * grid[1], dim))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        return x + resample(self.table, self.grid, grid)


@dataclass(frozen=True)
class ViTConfig(PatchConfig):
    """The sizes of a ViT, in pixels and features. The defaults are ViT-B/16's."""

    image_size: Size = 224
    patch_size: Size = 16
    channels: int = 3
    classes: int = 1000
    dim: int = 768
    depth: int = 12
    heads: int = 12
    mlp_ratio: float = 4  # width of the MLP's hidden layer over dim
    pool: Literal["class", "mean"] = "class"  # what the head reads
    dropout: Fraction = 0.0
    attention_dropout: Fraction = 0.0
    stochastic_depth: Fraction = 0.0  # probability in the last block; rises from 0


class ViT(Model):
    """Patches become tokens, blocks mix them, a head that starts at zero reads the logits."""

    config: ViTConfig

    def __init__(self, config: Any):  # a ViTConfig, or a variant's config
        super().__init__()
        self.config = c = config
        self.patch_embedding = self.new_embedding()
        self.class_token = nn.Parameter(torch.zeros(1, 1, c.dim)) if c.pool == "class" else None
        self.positions = self.new_positions()
        self.dropout = nn.Dropout(c.dropout)
        self.blocks = nn.ModuleList(self.new_block() for _ in range(c.depth))
        add_stochastic_depth(self.blocks, c.stochastic_depth)
        self.norm = nn.LayerNorm(c.dim, eps=NORM_EPS)
        self.head = nn.Linear(c.dim, c.classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    # Variants override these four: see variants.py and mixer.py.
    def new_embedding(self) -> nn.Module:
        return PatchEmbedding(self.config.patch_size, self.config.dim, self.config.channels)

    def new_positions(self) -> nn.Module:
        return Positions(self.config.grid, self.config.dim, self.config.pool == "class")

    def new_block(self) -> nn.Module:
        c = self.config
        return Block(c.dim, c.heads, c.hidden, c.dropout, c.attention_dropout)

    def mask(self, grid: Grid) -> Tensor | None:
        return None  # every token attends to every other

    def tokens(self, images: Images) -> Tokens:
        """The tokens after the blocks: the class token first, then patches in reading order."""
        check_images(images, self)
        grid = grid_of((images.shape[2], images.shape[3]), self.config.patch_size)
        x = self.patch_embedding(images)
        if self.class_token is not None:  # x.shape[0]: len(x) would fix the batch of an export
            x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1)
        x = self.dropout(self.positions(x, grid))
        mask = self.mask(grid)
        for block in self.blocks:
            x = block(x, mask)
        return x

    def pooled(self, x: Tokens) -> Features:
        return x.mean(1) if self.class_token is None else x[:, 0]

    def forward(self, images: Images) -> Logits:
        return self.head(self.pooled(self.norm(self.tokens(images))))
