"""Attention that is known, in a model built by hand, and everybody's small vision transformers."""

import torch
import torchvision
from torch import nn

import minivit
from tests.foreign import huggingfaces, timms
from tests.parity import draw

SIZE, GRID = (24, 32), (3, 4)  # 12 patches of 8 x 8 pixels
DIM, HEADS, DEPTH, CLASSES = 24, 3, 2, 5  # as in tests.foreign


def images(n=2, size=SIZE, dtype=torch.float32):
    return torch.randn(n, 3, *size, generator=torch.Generator().manual_seed(1), dtype=dtype)


class Known(nn.Module):
    """A patch embedding and blocks whose attention weights are given: ``[heads, tokens, tokens]``.

    The tokens are those of a grid, behind as many others of zero as there are extra ones.
    """

    def __init__(self, *weights, patch=8, extra=0):
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, patch, patch)
        self.blocks = nn.ModuleList(map(KnownBlock, weights))
        self.extra = extra

    def forward(self, images):
        x = self.embed(images).flatten(2).mT
        x = torch.cat([x.new_zeros(len(x), self.extra, DIM), x], 1)
        for block in self.blocks:
            x = block(x)
        return x.mean(1)


class KnownBlock(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def forward(self, x):
        scores = self.weights.log().expand(len(x), -1, -1, -1)
        return x + scores.softmax(-1).mean(1) @ x


class Scaled(nn.Module):
    """Branches that are multiples of the stream; the last sum goes into no module."""

    def __init__(self, *scales):
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, 8, 8)
        self.parts = nn.ModuleList(nn.Linear(DIM, DIM, bias=False) for _ in scales)
        for part, scale in zip(self.parts, scales, strict=True):
            part.weight.data = scale * torch.eye(DIM)

    def forward(self, images):
        x = self.embed(images).flatten(2).mT
        for part in self.parts:
            x = x + part(x)
        return nn.functional.relu(x)


class SharedBlock(KnownBlock):
    """Computes its attention weights once for all images: ``[1, heads, tokens, tokens]``."""

    def forward(self, x):
        return x + self.weights.log()[None].softmax(-1).mean(1) @ x


def minivit_vit(pool="mean"):
    sizes = {"image_size": SIZE, "patch_size": 8, "dim": DIM, "depth": DEPTH, "heads": HEADS}
    return minivit.create("vit_b_32", mlp_ratio=2, classes=CLASSES, pool=pool, **sizes)


# What builds the model, its blocks' names, its attention's name in them, and extra tokens.
MODELS = {
    "minivit mean": (minivit_vit, "blocks.{}", "attention", 0),
    "minivit class": (lambda: minivit_vit("class"), "blocks.{}", "attention", 1),
    "minivit attention": (lambda: minivit_vit("attention"), "blocks.{}", "attention", 0),
    # Squares alone.
    "torchvision": (lambda: torchvision.models.VisionTransformer(24, 8, DEPTH, HEADS, DIM, 2 * DIM, num_classes=CLASSES), "encoder.layers.encoder_layer_{}", "self_attention", 1),
    "timm": (lambda: timms("registers with positions", torch.float32, img_size=SIZE), "blocks.{}", "attn", 3),
    "huggingface": (lambda: huggingfaces("ViTForImageClassification", torch.float32, image_size=SIZE), "vit.layers.{}", "attention", 1),
}  # fmt: skip


def everybodys(name):
    """The model, random in every number and in evaluation mode; images; and the grid."""
    model = draw(MODELS[name][0]()).eval()
    square = name == "torchvision"
    return model, images(size=(24, 24) if square else SIZE), (3, 3) if square else GRID
