"""Parts of later vision transformers, each in the place of a plain one.

LayerScale (DeiT III, DINOv2), gated MLPs (DINOv2 giant), registers (DINOv2), a norm before the
blocks (CLIP), other GELUs.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from minivit.patches import pair
from minivit.positions import resample
from minivit.shapes import Features, Grid, Images, Mask, Size, Tokens
from minivit.vit import MLP, NORM_EPS, Positions, scaled_dot_product_attention


def window_mask(grid: Grid, window: int, class_token: bool = False, *, shift: int = 0) -> Mask:
    """Attention within windows that tile the grid, as in Liu et al. (2021), "Swin Transformer".

    The windows start at the upper left corner, or ``shift`` patches down and to the right of it:
    in every other block of a Swin, by half a window. Where they do not fill the grid, those at its
    edges are smaller. A class token, if there is one, comes first; it sees all, and all see it.
    """
    if not 0 <= shift < window:
        raise ValueError(f"expected 0 <= shift < window: got shift={shift}, window={window}")
    windows = (_positions(grid) + window - shift) // window  # [2, patches]
    return _allow((windows[:, :, None] == windows[:, None]).all(0), class_token)


def local_mask(grid: Grid, kernel: int, class_token: bool = False) -> Mask:
    """Attention to a neighbourhood of k x k patches, as a k x k convolution has it.

    That of ConvViT in Park & Kim (2022), "How Do Vision Transformers Work?". At an edge the
    neighbourhood ends with the image.
    """
    if kernel < 1 or kernel % 2 == 0:
        raise ValueError(f"expected an odd side of the neighbourhood: got {kernel}")
    positions = _positions(grid)  # [2, patches]
    distances = (positions[:, :, None] - positions[:, None]).abs().amax(0)
    return _allow(distances <= kernel // 2, class_token)


def _positions(grid: Grid) -> Tensor:
    """Row and column of every patch, ``[2, patches]``."""
    return torch.cartesian_prod(*map(torch.arange, grid)).T


def _allow(mask: Tensor, class_token: bool) -> Tensor:
    """The mask with a first row and column that are true, if there is a class token."""
    return F.pad(mask, (1, 0, 1, 0), value=True) if class_token else mask


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


class ConvStem(nn.Module):
    """Convolutions of stride 2, each with BatchNorm and ReLU, until a patch is one pixel.

    Their channels double up to ``dim``, and a 1 x 1 convolution follows: for patches of 16 and
    ``dim=384`` the paper's 48, 96, 192, 384. A patch's side must be a power of two, and half of it
    divide ``dim``.
    """

    def __init__(self, patch_size: Size, dim: int, channels: int = 3) -> None:
        super().__init__()
        patch = pair(patch_size)
        side = patch[0]
        if patch != (side, side) or side < 2 or side & (side - 1) or dim % (side // 2):
            expected = "a square patch, its side a power of two and half of it a divisor of dim"
            raise ValueError(f"expected {expected}: got {patch}, {dim=}")
        layers: list[nn.Module] = []
        width = dim // (side // 2)
        while width <= dim:
            layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(width), nn.ReLU()]
            channels, width = width, 2 * width
        self.layers = nn.Sequential(*layers)
        self.projection = nn.Conv2d(dim, dim, 1)
        nn.init.trunc_normal_(self.projection.weight, std=(2 / dim) ** 0.5)  # as torchvision's
        nn.init.zeros_(self.projection.bias)  # type: ignore[arg-type]

    def forward(self, images: Images) -> Tokens:
        maps = self.projection(self.layers(images))
        return rearrange(maps, "b d rows columns -> b (rows columns) d")


class GatedMLP(MLP):
    r"""SwiGLU, Shazeer (2020): :math:`W_2(s(W_gx+b_g) \odot (W_vx+b_v))+b_2`, with s the SiLU."""

    def __init__(self, dim: int, hidden: int, dropout: float = 0):
        super().__init__(dim, hidden, dropout)
        self.up = nn.Linear(dim, 2 * hidden)  # gates, then values
        self.activation = nn.SiLU()  # type: ignore[assignment]

    def forward(self, x: Features) -> Features:
        gates, values = self.up(x).chunk(2, -1)  # [..., hidden] each
        return self.dropout(self.down(self.dropout(self.activation(gates) * values)))


def add_layer_scale(branch: nn.Module, dim: int, initial: float) -> None:
    """LayerScale: every feature of what a branch adds is multiplied by a learned factor.

    Touvron et al. (2021), "Going deeper with Image Transformers".
    """
    branch.scale = nn.Parameter(torch.full((dim,), initial))
    branch.register_forward_hook(_scaled)


def _scaled(branch: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return output * branch.scale  # type: ignore[operator]


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


class WithoutPositions(nn.Module):
    """Adds nothing; the norm before the blocks stays."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        return self.norm(x)
