"""From the tokens of an image to one vector, by attention: the "MAP" head."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from minivit.networks.shapes import Tokens
from minivit.networks.vit import MLP, NORM_EPS, scaled_dot_product_attention


class AttentionPool(nn.Module):
    """One learned query attends to all tokens; an MLP with a residual follows.

    The multi-head attention pooling of Lee et al. (2019), "Set Transformer", as Zhai et al. (2022)
    use it in "Scaling Vision Transformers". There the query is a learned vector times a learned
    matrix; here the product itself is what is learned.
    """

    def __init__(self, dim: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(heads, 1, dim // heads))  # [heads, 1, d_head]
        self.kv = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS)
        self.mlp = MLP(dim, hidden)

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        k, v = rearrange(self.kv(x), "b n (kv h d) -> kv b h n d", kv=2, h=len(self.query))
        q = self.query.expand(x.shape[0], -1, -1, -1)
        z = scaled_dot_product_attention(q, k, v)  # [batch, heads, 1, d_head]
        pooled = self.out(rearrange(z, "b h 1 d -> b (h d)"))
        return pooled + self.mlp(self.norm(pooled))
