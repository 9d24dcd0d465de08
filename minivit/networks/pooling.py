"""From the tokens of a picture to one vector, by attention: the "MAP" head."""

import torch
from einops import rearrange
from torch import Tensor, nn

from minivit.networks.attention import scaled_dot_product_attention
from minivit.networks.encoder import MLP, NORM_EPS


class AttentionPool(nn.Module):
    """One learned query attends to all tokens; an MLP with a residual follows.

    The multi-head attention pooling of Lee et al. (2019), "Set Transformer", as Zhai et al. (2022)
    use it in "Scaling Vision Transformers". There the query is a learned vector times a learned
    matrix; here the product itself is what is learned.

    Args:
        dim: Width of a token.
        heads: Heads of the attention; must divide ``dim``.
        hidden: Width of the MLP's hidden layer.

    Raises:
        ValueError: ``heads`` does not divide ``dim``.
    """

    def __init__(self, dim: int, heads: int, hidden: int) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise ValueError(f"heads must divide dim: got dim={dim}, heads={heads}")
        self.query = nn.Parameter(torch.randn(heads, 1, dim // heads))  # [heads, 1, d_head]
        self.kv = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS)
        self.mlp = MLP(dim, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Pools tokens ``[batch, tokens, dim]`` into ``[batch, dim]``."""
        heads = len(self.query)
        k, v = rearrange(self.kv(x), "b n (two h d) -> two b h n d", two=2, h=heads)
        z = scaled_dot_product_attention(self.query, k, v)  # [batch, heads, 1, d_head]
        pooled = self.out(rearrange(z, "b h 1 d -> b (h d)"))
        return pooled + self.mlp(self.norm(pooled))
