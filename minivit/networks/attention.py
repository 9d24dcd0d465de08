"""Attention from its formula: scaled dot products, a softmax, several heads.

The formulas are those of Vaswani et al. (2017), "Attention Is All You Need", section 3.2.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Says how much each query takes from each key: :math:`\mathrm{softmax}(QK^\top/\sqrt{d})`.

    Args:
        q: Queries, ``[..., queries, d_head]``.
        k: Keys, ``[..., keys, d_head]``.
        mask: Booleans that broadcast to ``[..., queries, keys]``; true where a query may attend.
            Default: everywhere. A query that may attend to nothing gets weights of zero.

    Returns:
        Weights, ``[..., queries, keys]``; along the last axis they are at least 0 and sum to 1.

    Raises:
        ValueError: Queries and keys differ in their last axis, or the mask is not boolean or of
            another shape.
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"queries and keys must have the same last axis: got q {list(q.shape)}, "
            f"k {list(k.shape)}"
        )
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # [..., queries, keys]
    if mask is None:
        return scores.softmax(-1)
    _check_mask(mask, scores.shape)
    # The most negative number and not -inf: a row with nothing allowed then has no NaN, neither
    # in its weights nor in its gradients, and the second fill makes it zero.
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1).masked_fill(~mask, 0)


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> Tensor:
    r"""Averages the values with the attention weights: :math:`\mathrm{softmax}(QK^\top/\sqrt{d})V`.

    Args:
        q: Queries, ``[..., queries, d_head]``.
        k: Keys, ``[..., keys, d_head]``.
        v: Values, ``[..., keys, d_value]``.
        mask: As for :func:`attention_weights`.

    Returns:
        ``[..., queries, d_value]``: for each query a convex combination of the values.

    Raises:
        ValueError: The number of keys and values differ, or as for :func:`attention_weights`.
    """
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"there must be one value for each key: got k {list(k.shape)}, v {list(v.shape)}"
        )
    return attention_weights(q, k, mask) @ v


def _check_mask(mask: Tensor | None, shape: Sequence[int]) -> None:
    """Refuses what is no mask of weights of this shape."""
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, true where a query may attend: got {mask.dtype}")
    sides = zip(reversed(mask.shape), reversed(shape), strict=False)
    if any(side != length and 1 not in (side, length) for side, length in sides):
        raise ValueError(
            f"expected a mask that broadcasts to weights {list(shape)}, [..., queries, keys]: got "
            f"{list(mask.shape)}"
        )


def explicit_is_faster(q: Tensor, mask: Tensor | None = None) -> bool:
    """Says whether the formula written out is faster than torch's fused kernel, which it equals.

    The fused kernel never stores the weights and is faster in general: a forward pass up to five
    times, with a mask up to ten; forward and backward in float32 from a tie (50 to 145 tokens) to
    three times. Its backward pass in half precision on a CPU is the exception: there the formula
    takes a sixth to a half of the time for 16 to 577 tokens, with a mask for 50 to 101. (Medians,
    interleaved; torch 2.13, one thread of a Xeon with AMX. On a GPU not measured.)

    The fused kernel has no second and no forward-mode derivative on a CPU. Who needs them enters
    ``torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)``.
    """
    half = q.dtype in (torch.bfloat16, torch.float16)
    gradient = torch.is_grad_enabled() and q.requires_grad
    few = q.shape[-2] <= (640 if mask is None else 128)
    return q.device.type == "cpu" and half and gradient and few


class MultiHeadAttention(nn.Module):
    """Multi-head self-attention: ``heads`` attentions side by side, each ``dim / heads`` wide.

    Queries, keys and values of all heads come from one linear map, in the order of torchvision's
    ``in_proj_weight``: all of q, then k, then v, and within each the first head first.

    Args:
        dim: Width of a token.
        heads: Number of heads; must divide ``dim``.
        dropout: Share of the attention weights dropped while training. Default: 0.

    Raises:
        ValueError: ``heads`` does not divide ``dim``, the dropout is no probability, tokens of
            another shape are given, or a mask that is not boolean or of another shape.
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise ValueError(f"heads must divide dim: got dim={dim}, heads={heads}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout is a share, at least 0 and below 1: got {dropout}")
        self.dim, self.heads, self.dropout = dim, heads, dropout
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mixes tokens ``[batch, tokens, dim]`` into tokens of the same shape.

        Args:
            x: Tokens, ``[batch, tokens, dim]``.
            mask: Booleans that broadcast to ``[batch, heads, tokens, tokens]``; true where the
                token of the row may attend to the token of the column. Default: everywhere.
        """
        if x.ndim != 3 or x.shape[-1] != self.dim:
            raise ValueError(f"expected tokens [batch, tokens, {self.dim}]: got {list(x.shape)}")
        _check_mask(mask, (len(x), self.heads, x.shape[1], x.shape[1]))
        q, k, v = rearrange(self.qkv(x), "b n (three h d) -> three b h n d", three=3, h=self.heads)
        dropout = self.dropout if self.training else 0.0
        # Both are softmax(q k^T / sqrt(d_head)) v: [batch, heads, tokens, d_head]
        if explicit_is_faster(q, mask):
            z = F.dropout(attention_weights(q, k, mask), dropout) @ v
        else:
            z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.out(rearrange(z, "b h n d -> b n (h d)"))
