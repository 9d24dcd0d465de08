"""Parts of later vision transformers, each in the place of a plain one.

LayerScale (DeiT III, DINOv2), registers (DINOv2), a norm before the blocks (CLIP), other GELUs.
"""

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


def scale_branches(block: Block, initial: float) -> None:
    """Gives both branches of a block LayerScale, with this factor to start from."""
    for branch, kind in ((block.attention, ScaledAttention), (block.mlp, ScaledMLP)):
        branch.__class__ = kind  # the same parts, another forward
        branch.scale = nn.Parameter(torch.full((block.norm1.normalized_shape[0],), initial))


class QuickGELU(nn.Module):
    r"""CLIP's: :math:`x\,\sigma(1.702\,x)`."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


# Of MLPs: the exact GELU, and two that come near it, SigLIP's and CLIP's.
ACTIVATIONS = {
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
