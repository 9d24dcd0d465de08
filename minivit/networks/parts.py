"""Parts of later vision transformers, each in the place of a plain one.

LayerScale (DeiT III, DINOv2), gated MLPs (DINOv2 giant), registers (DINOv2), a norm before the
blocks (CLIP), other GELUs.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minivit.networks.positions import resample
from minivit.networks.shapes import Features, Grid, Mask, Tokens
from minivit.networks.vit import MLP, Block, MultiHeadAttention, Positions


class ScaledAttention(MultiHeadAttention):
    """Attention with LayerScale: every feature of what it adds has a learned factor.

    Touvron et al. (2021), "Going deeper with Image Transformers".
    """

    scale: nn.Parameter  # [dim]

    def forward(self, x: Tokens, mask: Mask | None = None) -> Tokens:
        return self.scale * super().forward(x, mask)


class ScaledMLP(MLP):
    """The same of an MLP."""

    scale: nn.Parameter  # [dim]

    def forward(self, x: Features) -> Features:
        return self.scale * super().forward(x)


class GatedMLP(MLP):
    r"""SwiGLU, Shazeer (2020): :math:`W_2(s(W_gx+b_g) \odot (W_vx+b_v))+b_2`, with s the SiLU."""

    def __init__(self, dim: int, hidden: int, dropout: float = 0):
        super().__init__(dim, hidden, dropout)
        self.up = nn.Linear(dim, 2 * hidden)  # gates, then values
        self.activation = nn.SiLU()  # type: ignore[assignment]

    def forward(self, x: Features) -> Features:
        gates, values = self.up(x).chunk(2, -1)  # [..., hidden] each
        return self.dropout(self.down(self.dropout(self.activation(gates) * values)))


class ScaledGatedMLP(ScaledMLP, GatedMLP):
    """The same with LayerScale."""


def scale_branches(block: Block, initial: float) -> None:
    """Gives both branches of a block LayerScale, with this factor to start from."""
    mlp = ScaledGatedMLP if isinstance(block.mlp, GatedMLP) else ScaledMLP
    for branch, kind in ((block.attention, ScaledAttention), (block.mlp, mlp)):
        branch.__class__ = kind  # the same parts, another forward
        branch.scale = nn.Parameter(torch.full((block.norm1.normalized_shape[0],), initial))


class QuickGELU(nn.Module):
    r"""CLIP's: :math:`x\,\sigma(1.702\,x)`."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


# Of MLPs: the exact GELU, and two that come near it, SigLIP's and CLIP's.
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "tanh": lambda: nn.GELU(approximate="tanh"),
    "quick": QuickGELU,
}


class EmbeddedPositions(Positions):
    """Positions of the class token and the patches; then a norm, where there is one.

    Registers have no positions: they stand between the class token and the patches. Darcet et al.
    (2024), "Vision Transformers Need Registers".
    """

    def __init__(
        self, grid: Grid, dim: int, class_token: bool, registers: int = 0, norm: bool = False
    ) -> None:
        super().__init__(grid, dim, class_token)
        self.registers = registers
        self.norm = nn.LayerNorm(dim) if norm else nn.Identity()

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        table = resample(self.table, self.grid, grid)
        first = len(table) - grid[0] * grid[1]  # 1 with a class token
        none = F.pad(table[:first], (0, 0, 0, self.registers))  # zeros
        return self.norm(x + torch.cat([none, table[first:]]))

    def removed(self) -> "WithoutPositions":
        """What is left without the positions."""
        return WithoutPositions(self.norm)


class WithoutPositions(nn.Module):
    """Adds nothing; the norm before the blocks stays."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        return self.norm(x)
