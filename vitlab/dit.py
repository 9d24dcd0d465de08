"""A diffusion transformer: a ViT that says where noise has to move to become a digit.

Peebles & Xie (2023), "Scalable Diffusion Models with Transformers", as a rectified flow (Liu et al.
2023). Time runs from 0, noise, to 1, an image; pixels from -1, black, to 1, white.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from minivit.catalogue import CHECKPOINTS
from minivit.files import read
from minivit.model import check_state
from minivit.patches import grid_of, unpatchify
from minivit.positions import sincos_2d
from minivit.shapes import Features, Images, Tokens
from minivit.vit import MLP, NORM_EPS, MultiHeadAttention, PatchEmbedding

WEIGHTS = CHECKPOINTS / "drawing/digits_dit.safetensors"  # no classifier: not in the catalogue
SIDE, NONE = 8, 10  # pixels; the label that says nothing
Times = Float[Tensor, " batch"]
Labels = Int[Tensor, " batch"]


def time_features(t: Times, dim: int) -> Features:
    """Cosines, then sines, of ``t`` at ``dim / 2`` rates from 1 to 1000, in equal ratios."""
    angles = t[:, None] * 1000 ** torch.linspace(0, 1, dim // 2)
    return torch.cat([angles.cos(), angles.sin()], 1)


def zeroed(layer: nn.Linear) -> nn.Linear:
    """The same map, which gives zeros until it is trained."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class DiTBlock(nn.Module):
    """A ViT block whose norms, and all that it adds, are set by a condition: adaLN-Zero."""

    def __init__(self, dim: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS, elementwise_affine=False)  # for both branches
        self.attention = MultiHeadAttention(dim, heads)
        self.mlp = MLP(dim, hidden)
        self.modulation = zeroed(nn.Linear(dim, 6 * dim))

    def forward(self, x: Tokens, c: Features) -> Tokens:
        numbers = self.modulation(F.silu(c))[:, None].chunk(6, -1)  # six of [batch, 1, dim]
        shift1, scale1, gate1, shift2, scale2, gate2 = numbers
        x = x + gate1 * self.attention(self.norm(x) * (1 + scale1) + shift1)
        return x + gate2 * self.mlp(self.norm(x) * (1 + scale2) + shift2)


class DiT(nn.Module):
    """Velocities of images on their way from noise, by time and label; the last label is none."""

    def __init__(
        self, patch_size: int = 2, dim: int = 48, depth: int = 3, heads: int = 4, mlp_ratio: int = 2
    ) -> None:
        super().__init__()
        self.grid, self.patch_size = grid_of(SIDE, patch_size), patch_size
        self.patch_embedding = PatchEmbedding(patch_size, dim, channels=1)
        self.register_buffer("positions", sincos_2d(self.grid, dim))
        self.time = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.labels = nn.Embedding(NONE + 1, dim)
        self.blocks = nn.ModuleList(DiTBlock(dim, heads, mlp_ratio * dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS, elementwise_affine=False)
        self.modulation = zeroed(nn.Linear(dim, 2 * dim))
        self.head = zeroed(nn.Linear(dim, patch_size**2))

    def forward(self, images: Images, t: Times, labels: Labels) -> Images:
        c = self.time(time_features(t, self.labels.embedding_dim)) + self.labels(labels)
        x = self.patch_embedding(images) + self.positions
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.modulation(F.silu(c))[:, None].chunk(2, -1)
        return self.images(self.norm(x) * (1 + scale) + shift)

    def images(self, x: Tokens) -> Images:
        """Each token becomes the pixels of its patch."""
        return unpatchify(self.head(x), self.grid, self.patch_size)


def flow_loss(
    model: nn.Module, images: Images, labels: Labels, random: Generator, noise: Images | None = None
) -> Tensor:
    """Mean squared error of the velocities at random times between noise and images."""
    noise = torch.randn(images.shape, generator=random) if noise is None else noise
    t = torch.rand(len(images), generator=random)
    points = noise + t.view(-1, 1, 1, 1) * (images - noise)
    return F.mse_loss(model(points, t, labels), images - noise)


@torch.no_grad()
def draw(
    model: nn.Module, noise: Images, labels: Labels, steps: int = 20, scale: float = 1.0
) -> Images:
    """Moves noise in equal steps; a guidance ``scale`` other than 1 takes two passes a step."""
    x = noise
    for i in range(steps):
        t = torch.full((len(x),), i / steps)
        velocity = model(x, t, labels)
        if scale != 1:
            free = model(x, t, torch.full_like(labels, NONE))
            velocity = free + scale * (velocity - free)
        x = x + velocity / steps
    return x


def load() -> DiT:
    """The diffusion transformer of digits that comes with the package, in evaluation mode."""
    model, (state, _) = DiT(), read(WEIGHTS)
    check_state(state, model.state_dict())
    model.load_state_dict(state)  # to float32
    return model.eval()
