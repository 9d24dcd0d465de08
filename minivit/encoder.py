"""The encoder block: attention between tokens, then an MLP on each, with norms and residuals.

The order is that of Dosovitskiy et al. (2021), with the norm before each sub-layer; Vaswani et al.
(2017) put it after the addition.
"""

import torch
from torch import Tensor, nn

from minivit.attention import MultiHeadAttention

NORM_EPS = 1e-6  # torchvision's; nn.LayerNorm has 1e-5


class MLP(nn.Module):
    r"""Two linear maps with a GELU between, on every token alone: :math:`W_2\,g(W_1x + b_1) + b_2`.

    The GELU is the exact one, :math:`g(x) = x\,\Phi(x)` (Hendrycks & Gimpel 2016).

    Args:
        dim: Width of a token.
        hidden: Width between the two maps.
        dropout: Share of entries dropped after each map while training. Default: 0.
    """

    def __init__(self, dim: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.activation = nn.GELU()
        self.down = nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.up, self.down):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """Maps tokens ``[batch, tokens, dim]`` to tokens of the same shape."""
        x = self.dropout(self.activation(self.up(x)))  # [batch, tokens, hidden]
        return self.dropout(self.down(x))


class StochasticDepth(nn.Module):
    """Leaves out a branch for some pictures of the batch while training (Huang et al. 2016).

    What is kept is divided by its probability, so that the expectation stays.

    Args:
        rate: Probability that a picture's branch is left out, below 1.

    Raises:
        ValueError: The rate is not in [0, 1).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"a rate of stochastic depth is at least 0 and below 1: got {rate}")
        self.rate = rate

    def forward(self, branch: Tensor) -> Tensor:
        """Returns ``[batch, tokens, dim]``, some pictures of it zero."""
        if not self.training or self.rate == 0:
            return branch
        kept = torch.rand(len(branch), 1, 1, device=branch.device) >= self.rate  # [batch, 1, 1]
        return branch * kept / (1 - self.rate)


class Block(nn.Module):
    """One encoder block.

    ``x + attention(norm1(x))``, then ``x + mlp(norm2(x))``; with ``norm="post"`` instead
    ``norm1(x + attention(x))``, then ``norm2(x + mlp(x))``; without residuals, no ``x +``.

    Initialised as torchvision's: Xavier-uniform weights for q, k, v and the MLP.

    Args:
        dim: Width of a token.
        heads: Heads of the attention; must divide ``dim``.
        hidden: Width of the MLP's hidden layer.
        norm: ``"pre"`` or ``"post"``. Default: before each sub-layer.
        residual: Whether a sub-layer is added to its input. Default: true.
        dropout: Share of entries dropped after attention and in the MLP. Default: 0.
        attention_dropout: Share of attention weights dropped. Default: 0.
        stochastic_depth: Probability that a sub-layer is left out for a picture. Default: 0.

    Raises:
        ValueError: ``heads`` does not divide ``dim``, an unknown norm, a probability that is none,
            or stochastic depth without residuals.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        hidden: int,
        *,
        norm: str = "pre",
        residual: bool = True,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f"the norm stands 'pre' or 'post' a sub-layer: got {norm!r}")
        if stochastic_depth and not residual:
            raise ValueError(
                "stochastic depth leaves a branch out, and without residuals nothing remains: "
                f"got stochastic_depth={stochastic_depth}, residual=False"
            )
        self.post, self.residual = norm == "post", residual
        self.norm1 = nn.LayerNorm(dim, eps=NORM_EPS)
        self.attention = MultiHeadAttention(dim, heads, attention_dropout)
        self.norm2 = nn.LayerNorm(dim, eps=NORM_EPS)
        self.mlp = MLP(dim, hidden, dropout)
        self.dropout = nn.Dropout(dropout)
        self.stochastic_depth = StochasticDepth(stochastic_depth)
        nn.init.xavier_uniform_(self.attention.qkv.weight)
        nn.init.zeros_(self.attention.qkv.bias)
        nn.init.zeros_(self.attention.out.bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Maps tokens ``[batch, tokens, dim]`` to tokens of the same shape.

        Args:
            x: Tokens, ``[batch, tokens, dim]``.
            mask: As for :class:`~minivit.attention.MultiHeadAttention`.
        """
        if self.post:
            x = self.norm1(self.add(x, self.dropout(self.attention(x, mask))))
            return self.norm2(self.add(x, self.mlp(x)))
        x = self.add(x, self.dropout(self.attention(self.norm1(x), mask)))
        return self.add(x, self.mlp(self.norm2(x)))

    def add(self, x: Tensor, branch: Tensor) -> Tensor:
        """The residual connection: the branch onto ``x``, or the branch alone."""
        return x + self.stochastic_depth(branch) if self.residual else branch
