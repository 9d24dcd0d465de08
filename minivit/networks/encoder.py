"""The encoder block: attention between tokens, then an MLP on each, with norms and residuals.

The order is that of Dosovitskiy et al. (2021), with the norm before each sub-layer; Vaswani et al.
(2017) put it after the addition.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from minivit.networks.attention import MultiHeadAttention
from minivit.networks.model import check_branches

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


class SubLayers(nn.Module):
    """What blocks have in common: how norms and residuals stand around their sub-layers.

    ``x + part(norm(x))``; with ``norm="post"`` instead ``norm(x + part(x))``; without residuals, no
    ``x +``; with ``norm="none"``, no norm.

    Args:
        norm: ``"pre"``, ``"post"`` or ``"none"``.
        residual: Whether a sub-layer is added to its input.
        stochastic_depth: Probability that a sub-layer is left out for a picture.

    Raises:
        ValueError: An unknown norm, a probability that is none, or stochastic depth without
            residuals.
    """

    def __init__(self, norm: str, residual: bool, stochastic_depth: float) -> None:
        super().__init__()
        if norm not in ("pre", "post", "none"):
            raise ValueError(
                f"the norm stands 'pre' or 'post' a sub-layer, or there is 'none': got {norm!r}"
            )
        check_branches(residual, stochastic_depth)
        self.post, self.residual = norm == "post", residual
        self.stochastic_depth = StochasticDepth(stochastic_depth)

    def step(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor] | None) -> Tensor:
        """Applies one sub-layer, with its norm and residual, to tokens ``[batch, tokens, dim]``.

        Where there is none, it adds nothing; without residuals it is the identity, behind its norm.
        """
        if part is None:
            return norm(x) if self.post or not self.residual else x
        return norm(self.add(x, part(x))) if self.post else self.add(x, part(norm(x)))

    def add(self, x: Tensor, branch: Tensor) -> Tensor:
        """The residual connection: the branch onto ``x``, or the branch alone."""
        return x + self.stochastic_depth(branch) if self.residual else branch


class Block(SubLayers):
    """One encoder block.

    ``x + attention(norm1(x))``, then ``x + mlp(norm2(x))``; with ``norm="post"`` instead
    ``norm1(x + attention(x))``, then ``norm2(x + mlp(x))``; without residuals, no ``x +``.

    Initialised as torchvision's: Xavier-uniform weights for q, k, v and the MLP.

    Args:
        dim: Width of a token.
        heads: Heads of the attention; must divide ``dim``.
        hidden: Width of the MLP's hidden layer.
        attention: Whether there is attention. Default: true.
        mlp: Whether there is an MLP. Default: true.
        norm: ``"pre"``, ``"post"`` or ``"none"``. Default: before each sub-layer.
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
        attention: bool = True,
        mlp: bool = True,
        norm: str = "pre",
        residual: bool = True,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        super().__init__(norm, residual, stochastic_depth)

        def norm_of(part: bool) -> nn.Module:  # none that nothing would read
            read = norm != "none" and (part or self.post or not residual)
            return nn.LayerNorm(dim, eps=NORM_EPS) if read else nn.Identity()

        self.norm1 = norm_of(attention)
        self.attention = MultiHeadAttention(dim, heads, attention_dropout) if attention else None
        self.norm2 = norm_of(mlp)
        self.mlp = MLP(dim, hidden, dropout) if mlp else None
        self.dropout = nn.Dropout(dropout)
        if self.attention is not None:
            nn.init.xavier_uniform_(self.attention.qkv.weight)
            nn.init.zeros_(self.attention.qkv.bias)
            nn.init.zeros_(self.attention.out.bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Maps tokens ``[batch, tokens, dim]`` to tokens of the same shape.

        Args:
            x: Tokens, ``[batch, tokens, dim]``.
            mask: As for :class:`~minivit.networks.attention.MultiHeadAttention`.
        """
        attention = self.attention and (lambda y: self.dropout(self.attention(y, mask)))
        x = self.step(x, self.norm1, attention)
        return self.step(x, self.norm2, self.mlp)
